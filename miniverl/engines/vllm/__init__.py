"""The managed vLLM server: its start, its leash, what it serves, and the engine that samples from it."""
