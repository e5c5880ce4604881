"""What we decide: pure functions from the characteristics of a workload to choices, each with its reason."""
