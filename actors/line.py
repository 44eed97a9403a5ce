"""This file holds Line: the way from the controller to one role, with a deadline for every call."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import ray
from ray import ObjectRef
from ray.actor import ActorHandle

from actors.outcome import fetch, lost
from actors.post import Post, Promise

DEADLINES: Mapping[str, float] = {
    "restore": 1800.0, "save": 1800.0, "export": 1800.0, "policy": 600.0, "begin": 600.0, "synchronize": 1800.0,
    "generate": 7200.0, "score": 7200.0, "evaluate": 7200.0, "add": 7200.0, "update": 7200.0,
}  # fmt: skip
"""Seconds until a call counts as hung; ``generate`` for each parcel. Generous: they end what would never end."""

QUICK = 300.0
"""Seconds for the other calls, which read or write the journal."""

LOOK = 1.0
"""Seconds between two looks at the other roles while one is waited for."""


class Line:
    def __init__(self, role: str, actor: ActorHandle, post: Post) -> None:
        self._role, self._actor, self._post = role, actor, post

    def submit(self, call: str, *args: Any, returns: int | str = 1) -> Any:
        """Sends the call; returns its reference, references or stream. References among the arguments travel on."""
        self._post.messages += 1
        return getattr(self._actor, call).options(num_returns=returns).remote(*args)

    def promise(self, call: str, *args: Any, source: Promise | None = None) -> Promise:
        """Sends a call whose outcome somebody settles later."""
        return Promise(reference=self.submit(call, *args), role=self._role, call=call, source=source)

    def call(self, call: str, *args: Any) -> Any:
        """Sends the call and waits for its value."""
        return self.wait(self.submit(call, *args), call)

    def stream(self, call: str, *args: Any) -> Iterator[Any]:
        """Sends the call and yields its items, each as soon as it is there."""
        references = self.submit(call, *args, returns="streaming")
        while True:
            self._until_ready(references, call)
            reference = next(references, None)
            if reference is None:
                return
            yield fetch(reference, role=self._role, call=call)

    def wait(self, reference: ObjectRef, call: str) -> Any:
        """The value of a call sent before. Meanwhile the other roles are looked at."""
        self._until_ready(reference, call)
        return fetch(reference, role=self._role, call=call)

    def until_over(self, promise: Promise) -> None:
        """Waits until a promise can be settled, with its deadline."""
        self._until_ready(promise.reference, promise.call)

    def _until_ready(self, reference: Any, call: str) -> None:
        seconds = DEADLINES.get(call, QUICK)
        deadline = time.monotonic() + seconds
        self._post.listen()
        while not ray.wait([reference], timeout=LOOK)[0]:
            self._post.look_around()
            if time.monotonic() > deadline:
                raise lost(self._role, f"{call} has not ended within {seconds:.0f} s")
