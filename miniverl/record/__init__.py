"""What a run leaves on disk: the journal of its groups and steps, checkpoints, and the run directory around them."""
