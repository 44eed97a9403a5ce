"""This file holds Page: a Markdown document cut into its fenced blocks and its words in backticks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = "<!-- not run -->"
"""Stands on the line before a block that only shows something."""

_FENCE = re.compile(r"(?P<before>[^\n]*)\n\n?```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block."""

    kind: str
    """bash, python, yaml, text; "" when unnamed."""
    text: str
    runs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One document."""

    name: str
    text: str

    def blocks(self, kind: str) -> list[Block]:
        found = (
            Block(kind=match["kind"], text=match["text"], runs=match["before"].strip() != NOT_RUN)
            for match in _FENCE.finditer("\n" + self.text)
        )
        return [block for block in found if block.kind == kind]

    def commands(self) -> list[list[str]]:
        """The words of every shell line, comments left out; of ``ray job submit`` what stands after the dashes."""
        lines = [line for block in self.blocks("bash") for line in block.text.replace("\\\n", " ").splitlines()]
        words = [shlex.split(line, comments=True) for line in lines]
        return [line[line.index("--") + 1 :] if line[0] == "ray" else line for line in words if line]

    def quoted(self) -> Iterator[str]:
        """Words in backticks and link targets, outside fenced blocks."""
        prose = re.sub(r"```.*?```", "", self.text, flags=re.DOTALL)
        yield from re.findall(r"`([^`\n]+)`", prose)
        yield from (target for target in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in target)


def pages(root: Path = ROOT) -> list[Page]:
    """README, CHANGELOG and everything under docs."""
    files = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md"))]
    return [Page(name=file.relative_to(root).as_posix(), text=file.read_text(encoding="utf-8")) for file in files]
