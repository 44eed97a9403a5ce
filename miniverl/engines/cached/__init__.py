"""hf_cached: continuous batching on Hugging Face modules with key/value memory of our own."""
