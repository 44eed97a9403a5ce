"""The native YAML recipe: its closed schema, its loading, its named cross-field rules."""
