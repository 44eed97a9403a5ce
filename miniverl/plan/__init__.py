"""The freezing of recipe, data and model identities into one immutable plan."""
