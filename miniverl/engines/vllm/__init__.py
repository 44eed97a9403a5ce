"""The room for the managed vLLM server. Empty so far: ``backend: vllm`` is refused by name."""
