"""This file holds what a document claims about the house, and whether it is so: commands, targets, paths and keys."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import typer

from miniverl.cli.main import app
from miniverl.recipe.schema import Recipe, known_keys
from tests.docs.pages import Page

TOPS = ("miniverl/", "actors/", "configs/", "tests/", "scripts/", "docs/", ".ci/")
FILES = re.compile(r"(README|CHANGELOG)\.md|LICENSE|Makefile|constraints\.txt|pyproject\.toml")


def wrong_command(words: list[str], root: Path) -> str | None:
    """Why a shell line would fail before it does anything; None when it would not."""
    program, *arguments = words
    if program == "miniverl":
        return _wrong_miniverl(arguments)
    if program == "make":
        return _wrong_make(arguments, root)
    if program == "pip":
        return _wrong_pip(arguments, root)
    return f"{program}: nobody checks such lines"


def _wrong_miniverl(arguments: list[str]) -> str | None:
    command = typer.main.get_command(app)
    chain = ["miniverl"]
    try:
        while True:
            context = command.make_context(chain[-1], list(arguments))
            if not hasattr(command, "resolve_command"):
                return None
            name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
            chain.append(str(name))
    except Exception as error:  # whatever the parser raises is the finding
        return f"{' '.join(chain)}: {error}"


def _wrong_make(targets: list[str], root: Path) -> str | None:
    known = re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), flags=re.MULTILINE)
    unknown = [target for target in targets if target not in known]
    return f"make has no {unknown}" if unknown else None


def _wrong_pip(arguments: list[str], root: Path) -> str | None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = re.search(r"\[(.*?)\]", arguments[-1])
    extras = wanted[1].split(",") if wanted else []
    unknown = [extra for extra in extras if extra not in project["optional-dependencies"]]
    if unknown:
        return f"pyproject.toml has no extra {unknown}"
    if "-c" in arguments and not (root / arguments[arguments.index("-c") + 1]).is_file():
        return "the constraints file is missing"
    return None


def missing_paths(page: Page, root: Path) -> list[str]:
    """Files and folders of the house a document names that are not there."""
    named = [word for word in page.quoted() if (word.startswith(TOPS) or FILES.fullmatch(word)) and " " not in word]
    return [name for name in named if "<" not in name and not (root / name).exists()]


def unknown_keys(page: Page) -> list[str]:
    """Words in backticks that look like recipe keys of a known block and are none: rollout.bakend."""
    keys = set(known_keys())
    blocks = "|".join(Recipe.model_fields)
    words = [match for word in page.quoted() if (match := re.match(rf"({blocks})(\.\w+)+(?=$|:|=)", word))]
    words = [word for word in words if not word.string.endswith((".parquet", ".sqlite", ".py"))]
    return [word[0] for word in words if word[0] not in keys and word[0] != "reward_model.ground_truth"]
