"""The room for workloads, measurements and gates. Empty so far."""
