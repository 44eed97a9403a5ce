"""This file holds StopWatch: the search for stop strings in responses that are still growing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from miniverl.engines.assemble import Decode

UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What a decoder writes for the first bytes of a character whose last ones are still to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Where a response ends."""

    length: int
    """Tokens, the one that completes the stop string included."""
    stop: str


class StopWatch:
    """The texts of the rows being decoded, by slot. Made only where there are stop strings: text costs time."""

    def __init__(self, stops: Sequence[str], stop_token_ids: Sequence[int], *, decode: Decode) -> None:
        self._stops, self._ends, self._decode = tuple(stops), frozenset(stop_token_ids), decode
        self._keep = max(map(len, self._stops)) - 1
        self._texts: dict[int, GrowingText] = {}

    def start(self, slots: Sequence[int]) -> None:
        """New responses begin in these slots."""
        self._texts.update((slot, GrowingText(self._decode, keep=self._keep)) for slot in slots)

    def move(self, rows: Sequence[tuple[int, int]]) -> None:
        """Rows moved, given as (from, to)."""
        for origin, target in rows:
            self._texts[target] = self._texts.pop(origin)

    def look(self, slot: int, tokens: Sequence[int]) -> Hit | None:
        """``tokens``: the response so far. A hit at the first token after which its text holds a stop string.

        Of several, the one that begins first; of those, the first of the list.
        """
        text = self._texts[slot]
        for length in range(text.tokens + 1, len(tokens) + 1):
            if tokens[length - 1] in self._ends:
                return None
            fresh = text.push(tokens[length - 1])
            found = [(fresh.index(stop), place) for place, stop in enumerate(self._stops) if stop in fresh]
            if found:
                return Hit(length=length, stop=self._stops[min(found)[1]])
        return None


class GrowingText:
    """The end of a text that grows by tokens.

    Only the tokens since the last whole character are decoded, after as many before them as decided the spaces between
    (how words join depends on what stands before them).
    """

    def __init__(self, decode: Decode, *, keep: int) -> None:
        self._decode, self._keep = decode, keep
        self._before: list[int] = []
        self._open: list[int] = []
        self._settled = ""
        self.tokens = 0
        """Pushed so far."""

    def push(self, token: int) -> str:
        """Takes a token; the end of the text: ``keep`` characters that were there before, and all that are new."""
        self.tokens += 1
        self._open.append(token)
        known = self._decode(self._before)
        fresh = self._settled + self._decode(self._before + self._open)[len(known) :]
        if not fresh.endswith(UNFINISHED):
            # Tokens without text decide nothing about spaces: those before them still do.
            silent = len(fresh) == len(self._settled)
            self._before, self._open = self._before * silent + self._open, []
            self._settled = fresh[-self._keep :] if self._keep else ""
        return fresh
