"""Slow twins: obviously right, and sharing no code with what they judge."""
