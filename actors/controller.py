"""This file holds ControllerActor: the only caller of the roles; it runs the page and streams what happens."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import cast

import ray
from ray.actor import ActorHandle

from actors.post import Post
from actors.remote import RemoteJournal, remote_roles
from actors.vitals import peak_rss
from actors.watch import Watch
from miniverl.contract.event import END, STEP, Event
from miniverl.contract.pulse import Pulse
from miniverl.errors import Stopped
from miniverl.plan.plan import Plan
from miniverl.training.assemble import assemble
from miniverl.training.loop import train
from miniverl.training.roles import Roles

Say = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the controller says about itself."""

    process: int
    step: int
    """Steps finished."""
    messages: int
    """Calls sent to the roles so far."""
    torch_loaded: bool
    """The controller holds no tensors: False, or a room that promises to import no torch does."""
    pulses: Mapping[str, Pulse]
    """The newest of each role."""


class ControllerActor:
    """``run`` has the default thread; pulses and questions are answered by the control group's own."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._watch = Watch()
        self._post = Post(self._watch)
        self._step = 0

    def born(self) -> None:
        """Returns once the process exists; what a placement waits for."""

    @ray.method(num_returns="streaming")
    def run(self, actors: Mapping[str, ActorHandle]) -> Iterator[Event]:
        """Trains to the end. Raises Stopped after a stop, else what a role raised or the RoleError of a lost one."""
        events: SimpleQueue[Event | Future[None]] = SimpleQueue()
        with ThreadPoolExecutor(1, thread_name_prefix="train") as thread:
            training = thread.submit(self._train, remote_roles(actors, self._post), events.put)
            training.add_done_callback(events.put)
            while isinstance(event := events.get(), Event):
                yield event
            training.result()

    @ray.method(concurrency_group="control")
    def beat(self, pulse: Pulse) -> str:
        """A role's sign of life; the reply is its directive."""
        return self._watch.beat(pulse)

    @ray.method(concurrency_group="control")
    def stop(self) -> None:
        """The run ends at the next parcel."""
        self._watch.stop()

    @ray.method(concurrency_group="control")
    def status(self) -> Status:
        return Status(
            process=os.getpid(), step=self._step, messages=self._post.messages, torch_loaded="torch" in sys.modules,
            pulses=self._watch.pulses(),
        )  # fmt: skip

    def _train(self, roles: Roles, say: Say) -> None:
        costs = Costs(self._post, self._watch)

        def tell(event: Event) -> None:
            if event.kind == STEP:
                self._step = event.step
                roles.journal.note(event.step, costs.of_step())
            say(event)

        run = assemble(self._plan, roles, stop=self._watch.stopping, say=tell, environ=os.environ)
        self._step = run.start
        try:
            train(run)
        except Stopped:
            run.save_after_stop()
            self._leave(roles, costs)
            raise
        finally:
            run.metrics.close()
        self._leave(roles, costs)
        say(Event(kind=END, text="the run is finished", step=self._step, total=self._step))

    def _leave(self, roles: Roles, costs: Costs) -> None:
        """The evaluation and the checkpoint after the last step have their costs as well."""
        roles.journal.note(self._step, costs.so_far())
        cast(RemoteJournal, roles.journal).release()


class Costs:
    """What orchestration costs; noted in the journal beside the steps, for it differs between equal runs."""

    def __init__(self, post: Post, watch: Watch) -> None:
        self._post, self._watch = post, watch
        self._messages, self._cpu = post.messages, time.process_time()

    def of_step(self) -> dict[str, object]:
        """Since the last call, and since the actors started."""
        messages, cpu = self._post.messages, time.process_time()
        step = {"messages": messages - self._messages, "cpu_seconds": cpu - self._cpu}
        self._messages, self._cpu = messages, cpu
        return {"controller": step, **self.so_far()}

    def so_far(self) -> dict[str, object]:
        """Busy seconds, calls and peak memory in bytes of every actor in this life of the run."""
        actors = {
            pulse.role: {"busy_seconds": pulse.busy_seconds, "calls": pulse.calls, "peak_rss": pulse.peak_rss}
            for pulse in self._watch.pulses().values()
        }
        own = {"busy_seconds": time.process_time(), "calls": self._post.messages, "peak_rss": peak_rss()}
        return {"actors": {"controller": own, **actors}}
