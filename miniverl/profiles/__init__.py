"""The room for verl-shaped YAML lowered to a recipe. Empty so far: only native recipes are read."""
