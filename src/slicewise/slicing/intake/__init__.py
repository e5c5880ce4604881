"""Rows on their way in: read, buffered, shown to user code, judged, and let in or refused."""
