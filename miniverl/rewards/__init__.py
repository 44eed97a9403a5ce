"""Rewards: what judges a finished response."""
