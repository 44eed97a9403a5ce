"""This file holds the tests of an engine's lifecycle, on both engines."""

import pytest

from miniverl.contract.policy import Policy
from miniverl.engines.base import MOVES, REMEDY, State
from miniverl.engines.cached.engine import CachedEngine
from miniverl.engines.reference import ReferenceEngine
from miniverl.errors import IdentityError, StateError
from tests.engines.tiny import TinyModel, decode, policy, requests

CALLS = {
    "synchronize": lambda engine: engine.synchronize(policy()),
    "generate": lambda engine: engine.generate(requests(3)),
    "quiesce": lambda engine: engine.quiesce(),
    "sleep": lambda engine: engine.sleep(),
    "wake": lambda engine: engine.wake(),
    "close": lambda engine: engine.close(),
}
WAYS = {
    State.NEW: (),
    State.SYNCHRONIZED: ("synchronize",),
    State.QUIESCED: ("synchronize", "quiesce"),
    State.ASLEEP: ("synchronize", "sleep"),
    State.CLOSED: ("close",),
}


@pytest.fixture(params=["cached", "reference"])
def engine(request):
    if request.param == "reference":
        return ReferenceEngine(TinyModel(), decode=decode)
    return CachedEngine(TinyModel(), decode=decode, slots=4, max_length=64, deterministic=True)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("call", CALLS)
def test_every_move_is_allowed_or_refused_as_the_table_says(engine, state, call):
    for step in WAYS[state]:
        CALLS[step](engine)
    assert engine.state is state
    if call in MOVES[state]:
        CALLS[call](engine)
        assert engine.state is MOVES[state][call]
        return
    with pytest.raises(StateError) as refusal:
        CALLS[call](engine)
    assert f"{call}()" in str(refusal.value) and state in str(refusal.value) and REMEDY[state] in str(refusal.value)
    assert engine.state is state


def test_the_policy_in_force_is_not_loaded_again(engine):
    engine.synchronize(policy())
    engine.synchronize(policy())
    assert engine._model.loads == 1
    engine.synchronize(policy(version=4))
    assert engine._model.loads == 2


def test_a_policy_whose_bytes_are_not_its_own_leaves_nothing_that_could_sample(engine):
    engine.synchronize(policy())
    named = policy(version=4)
    tensors = {**named.tensors, "lm_head.weight": named.tensors["lm_head.weight"] + 1}
    broken = Policy(snapshot=named.snapshot, tensors=tensors)
    with pytest.raises(IdentityError, match=r"policy\.tensors"):
        engine.synchronize(broken)
    assert engine.state is State.QUIESCED
    with pytest.raises(StateError):
        engine.generate(requests(3))
    engine.synchronize(policy())
    assert len(list(engine.generate(requests(3)))) == 1


def test_one_foreign_request_refuses_the_whole_call_before_the_model_runs(engine):
    engine.synchronize(policy())
    foreign = requests(3, 3, snapshot=policy(version=9).snapshot)
    with pytest.raises(IdentityError, match="one and the same snapshot"):
        engine.generate((*requests(3), *foreign[4:]))
    assert engine.metrics()["physical_batches"] == 0


@pytest.mark.parametrize("call", ["quiesce", "sleep", "close"])
def test_a_generation_under_way_ends_with_its_policy(engine, call):
    engine.synchronize(policy())
    stream = engine.generate(requests(3, 4, 5))
    next(stream)
    CALLS[call](engine)
    with pytest.raises(StateError, match="ended by a later call"):
        next(stream)
