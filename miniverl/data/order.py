"""This file holds PromptOrder: which prompt stands at which cursor, over epochs without end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from miniverl.contract.prompt import Prompt
from miniverl.seeds import derive_seed


class PromptOrder:
    """A pure function of (seed, cursor): nothing is consumed, so any part may ask again, after any restart.

    The cursor counts prompts taken since the run began. Each epoch visits every prompt once, in an order of its own
    when asked to shuffle, else in file order.
    """

    def __init__(self, prompts: Sequence[Prompt], *, shuffle: bool, seed: int) -> None:
        assert len(prompts), "an empty prompt set is refused when it is read"
        self._prompts = prompts
        self._shuffle, self._seed = shuffle, seed
        self._known: tuple[int, np.ndarray] = (-1, np.empty(0, dtype=np.int64))

    def take(self, cursor: int, count: int) -> list[tuple[int, Prompt]]:
        """``count`` prompts from ``cursor`` on, each with its cursor. take(a, b) + take(a + b, c) = take(a, b + c)."""
        assert cursor >= 0 and count >= 0, (cursor, count)
        return [(at, self._at(at)) for at in range(cursor, cursor + count)]

    def _at(self, cursor: int) -> Prompt:
        epoch, position = divmod(cursor, len(self._prompts))
        return self._prompts[self._permutation(epoch)[position] if self._shuffle else position]

    def _permutation(self, epoch: int) -> np.ndarray:
        """int64 [N]; the last one asked for is kept. Sorting raw words: numpy may change how it permutes, not these."""
        if self._known[0] != epoch:
            words = np.random.Philox(key=derive_seed("order", self._seed, epoch)).random_raw(len(self._prompts))
            self._known = (epoch, np.argsort(words, kind="stable"))
        return self._known[1]
