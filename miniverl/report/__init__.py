"""What can be told about a run from its directory alone, for people and for programs."""
