"""The room of the data: prompts, the chat template, their order, and the sums of the embedded default."""
