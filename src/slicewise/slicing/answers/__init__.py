"""Answers: from ranges of partials to result blocks, and the record of what was reported."""
