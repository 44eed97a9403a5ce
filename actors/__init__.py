"""The processes of a run: one Ray actor for each role, thin shells around the library, and no algorithm."""
