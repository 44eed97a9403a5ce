"""This file holds the tests of compiled decoding: the same tokens, and no compilation once the run has begun."""

import json
import os
import subprocess
import sys

import pytest
import torch

from miniverl.engines.cached.engine import CachedEngine
from tests.engines.cached.test_engine import LENGTHS, TOLERANCE, cached, digests, groups, split
from tests.engines.tiny import TinyModel, decode, policy, requests


@pytest.fixture(autouse=True)
def nothing_compiled_before():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(architecture="qwen3", *, slots=8):
    engine = CachedEngine(
        TinyModel(architecture), decode=decode, slots=slots, max_length=190, deterministic=True, compiled=True
    )
    engine.synchronize(policy(architecture))
    list(engine.generate(requests(5, samples=1, snapshot=policy(architecture).snapshot)))  # compiles
    return engine


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["qwen3", "gemma3"])
def test_compiled_decoding_draws_the_same_tokens_and_never_compiles_in_a_run(architecture):
    engine = compiled(architecture, slots=16)
    seconds = engine.metrics()["seconds_compile"]
    assert engine.metrics()["compiled"] == 1 and seconds > 0
    eager = cached(architecture, slots=16)
    with torch.compiler.set_stance("fail_on_recompile"):
        for force in (policy(architecture), policy(architecture, version=4, seed=1)):
            for one in (engine, eager):
                one.synchronize(force)
            asked = requests(*LENGTHS, 33, 64, 130, max_new_tokens=20, top_p=0.9, snapshot=force.snapshot)
            expected = groups(eager, asked)
            for name, group in groups(engine, asked).items():  # 4 to 16 rows, 8 to 152 positions
                assert group.token_ids.tolist() == expected[name].token_ids.tolist()
                assert abs(group.logps - expected[name].logps).max() <= TOLERANCE
    assert engine.metrics()["seconds_compile"] == seconds


@pytest.mark.slow
def test_compiled_bits_do_not_depend_on_slots_neighbours_or_order():
    asked = requests(*LENGTHS, 33, 64, 130, max_new_tokens=20)
    expected = digests(compiled(slots=16), asked)
    torch._dynamo.reset()
    few = compiled(slots=6)
    assert digests(few, sum(reversed(split(asked)), ())) == expected
    assert digests(few, split(asked)[3]).items() <= expected.items()


NO_COMPILER = """
import json
import torch
from tests.engines.cached.test_compiled import cached, compiled, digests, requests
asked = requests(5, 9)
engine = compiled(slots=4)
print(json.dumps([engine.metrics()["compiled"], digests(engine, asked) == digests(cached(slots=4), asked)]))
"""


@pytest.mark.slow
def test_without_a_compiler_decoding_goes_on_uncompiled_and_says_so(tmp_path):
    there = {**os.environ, "CXX": str(tmp_path / "none"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", NO_COMPILER], env=there, capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [0.0, True], done.stderr
