"""Rollout engines: one protocol, a slow oracle and the fast ones that it judges."""
