"""A workload on a stream: rows are sliced into packs where they are read, packs meet in shards that keep the state."""
