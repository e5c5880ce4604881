"""State as types and as plain data, and how an engine goes on from one when queries or types have changed."""
