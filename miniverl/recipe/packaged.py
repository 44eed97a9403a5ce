"""This file holds the finding of recipes: a path, or the name of one that comes with the package."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from miniverl.errors import ConfigError
from miniverl.recipe.path import expanded, kind_of


def packaged_recipes() -> Mapping[str, Path]:
    """Name -> file of every recipe that travels with the package, or lies beside it in a clone."""
    package = Path(str(files("miniverl")))
    for folder in (package / "configs", package.parent / "configs"):
        if recipes := {path.stem: path for path in sorted(folder.glob("*.yaml"))}:
            return recipes
    return {}


def find_recipe(source: str) -> Path:
    """The file of ``source``: a path (``~`` is home), or the name of a packaged recipe. ConfigError if neither."""
    path = expanded(source, field="recipe")
    kind = kind_of(path, field="recipe")
    if kind == "file":
        return path
    recipes = packaged_recipes()
    if source in recipes:
        return recipes[source]
    close = get_close_matches(path.stem, recipes, n=1)
    raise ConfigError(
        "recipe",
        value=source,
        problem="is a folder" if kind == "folder" else "is neither a file nor the name of a packaged recipe",
        fix=f"did you mean {close[0]}?" if close else f"write the path of a YAML file, or one of {', '.join(recipes)}",
    )
