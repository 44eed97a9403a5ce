"""Models: loading, the adapter, the mirror an engine samples from, and log-probs without a [B, T, V] tensor."""
