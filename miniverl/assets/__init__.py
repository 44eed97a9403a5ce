"""The room of packaged files: the tiny teacher, the tiny student and their sums."""
