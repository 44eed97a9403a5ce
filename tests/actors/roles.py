"""This file holds the comparison of a role's protocol with who plays it: the same calls with the same arguments."""

import inspect


def differences(protocol: type, player: type, *, renamed: dict[str, list[str]] | None = None) -> list[str]:
    """Methods of ``protocol`` that ``player`` lacks or takes other arguments for; ``renamed`` says what is meant to."""
    found = []
    for name, method in inspect.getmembers(protocol, inspect.isfunction):
        if name.startswith("_"):
            continue
        wanted = (renamed or {}).get(name, list(inspect.signature(method).parameters))
        own = getattr(player, name, None)
        if own is None or [one for one in inspect.signature(own).parameters if not one.startswith("_ray")] != wanted:
            found.append(name)
    return found
