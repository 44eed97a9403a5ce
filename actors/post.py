"""This file holds Post: what the lines to all roles share, from the count of messages to the promises outstanding."""

from __future__ import annotations

from dataclasses import dataclass

import ray
from ray import ObjectRef

from actors.outcome import fetch, lost
from actors.watch import Watch
from miniverl.contract.parcel import Parcel
from miniverl.errors import MiniverlError


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A call that nobody has waited for yet."""

    reference: ObjectRef
    role: str
    call: str
    source: Promise | None = None
    """Whose outcome is an argument of this call: when both failed, the source's error is the cause."""

    def settle(self) -> None:
        """Raises the failure of the source or of the call, whichever came first; waits as long as it takes."""
        try:
            fetch(self.reference, role=self.role, call=self.call)
        except MiniverlError:
            if self.source is not None:
                self.source.settle()
            raise


class Post:
    """Used by the controller's training thread alone."""

    def __init__(self, watch: Watch) -> None:
        self.messages = 0
        self._watch = watch
        self._parcel: tuple[Parcel, ObjectRef] | None = None
        self._promises: list[Promise] = []

    def parcel(self, parcel: Parcel) -> ObjectRef:
        """The parcel in the object store: put there once, for journal, teacher and trainer."""
        if self._parcel is None or self._parcel[0] is not parcel:
            self._parcel = (parcel, ray.put(parcel))
        return self._parcel[1]

    def remember(self, promise: Promise) -> None:
        self._promises.append(promise)

    def promises(self) -> tuple[Promise, ...]:
        """Outstanding ones, oldest first."""
        return tuple(self._promises)

    def settle_finished(self) -> None:
        """Forgets the promises that were kept, so that the store may drop what they hold; waits for none.

        Raises the failure of the oldest one that was broken.
        """
        references = [promise.reference for promise in self._promises]
        if not references:
            return
        over = set(ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)[0])
        for promise in self.promises():
            if promise.reference in over:
                promise.settle()
                self._promises.remove(promise)

    def forget(self) -> None:
        """The step they belonged to is begun anew."""
        self._promises.clear()

    def look_around(self) -> None:
        """Called once a second while one role is waited for: raises when another one failed or fell silent."""
        if (silent := self._watch.look()) is not None:
            raise lost(silent, "its process sends no sign of life any more")
        self.settle_finished()

    def listen(self) -> None:
        """The controller begins to wait: silence counts from here."""
        self._watch.forgive()
