"""Rows in event-time order, for windows whose bounds depend on rows: counts, other measures, conditions, user code."""
