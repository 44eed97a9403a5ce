"""The room for looped transformers. Empty so far."""
