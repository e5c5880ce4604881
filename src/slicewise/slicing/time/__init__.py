"""Time slices: event time cut at the edges of context-free windows and sessions."""
