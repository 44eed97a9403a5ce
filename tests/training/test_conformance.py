"""The conformance gate on real engines: one that is wrong in a known way is told from one that rounds."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from miniverl.data.order import PromptOrder
from miniverl.errors import ConformanceError
from miniverl.record.reader import PROBE, JournalReader
from miniverl.training.assemble import read_planned
from miniverl.training.conformance import CORRECTED, PASS, REFUSED, Conformance, Probe, judge
from miniverl.training.local import local_roles
from miniverl.training.mismatch import Mismatch
from tests.finished import bytes_of, finish
from tests.training.conftest import tiny

K1 = ("objective=sampled_k1", "distillation.rollout_is=token")
UNCORRECTED = ("objective=sampled_k1", "distillation.rollout_is=null")
STRICT = ("rollout.conformance=strict",)


class Bent:
    """The real rollout, with its LM head scaled: logits at another temperature than the request's."""

    def __init__(self, rollout, factor: float) -> None:
        self._rollout = rollout
        head = rollout._engine._model.module.get_output_embeddings()
        head.weight.data = head.weight.data * factor

    def __getattr__(self, name):
        return getattr(self._rollout, name)


class Silent(Bent):
    """The real rollout; like vLLM it does not know the whole vocabulary's log-probs of what top-p and top-k left."""

    def generate(self, requests):
        for groups in self._rollout.generate(requests):
            yield tuple(
                group if group.behaviour_logps is None else dataclasses.replace(group, logps=None) for group in groups
            )


@pytest.fixture
def probed(plan_for):
    """Probes version 0 with an engine of the given kind; returns what was said, noted and recorded."""
    opened = []

    def probe(*overrides: str, factor: float = 1.0, kind=Bent, version: int = 0, start: int = 0):
        plan = plan_for(f"run-{len(opened)}", *overrides)
        roles = local_roles(plan)
        opened.append(roles)
        roles = dataclasses.replace(roles, rollout=kind(roles.rollout, factor))
        said = []
        prompts = PromptOrder(read_planned(plan.train_data), shuffle=True, seed=1)
        Conformance(plan, prompts=prompts, start=start, say=said.append).probe_if_due(version, roles)
        assert roles.journal.facts().rows == 0, "probes are not journaled"
        return [facts[PROBE] for _, _, facts in roles.journal.notes()], [event.text for event in said]

    yield probe
    for roles in opened:
        roles.journal.release()


def test_an_engine_that_samples_from_the_trainers_policy_passes_every_limit(probed):
    [found], [line] = probed(*STRICT)
    assert (found["version"], found["outcome"], found["greedy"]["unlikeliest"]) == (0, PASS, 0)
    assert 0 < found["sampled"]["engine"]["tokens"] <= 8 * 64
    assert found["sampled"]["engine"]["max"] < 5e-5
    assert "version 0: pass" in line


@pytest.mark.parametrize("factor", [1.5, 0.6, -1.0], ids=["colder", "hotter", "other weights"])
def test_an_engine_that_samples_from_another_policy_is_refused_with_what_was_compared(probed, factor):
    with pytest.raises(ConformanceError, match=r"tokens at temperature 1, .*these are two policies.*hf_reference"):
        probed(factor=factor)


def test_an_engine_that_is_somewhat_off_goes_on_where_the_loss_can_bear_it(probed):
    for overrides, why in (((), "gkd does not depend"), (K1, "rollout_is corrects")):
        [found], [line] = probed(*overrides, factor=1.002)
        assert found["outcome"] == CORRECTED
        assert why in line


def test_an_engine_that_is_somewhat_off_is_refused_where_nothing_corrects_it(probed):
    with pytest.raises(ConformanceError, match=r"set distillation\.rollout_is: token"):
        probed(*UNCORRECTED, factor=1.002)
    with pytest.raises(ConformanceError, match=r"strict wants greedy log-probs within 0\.0002"):
        probed(*STRICT, factor=1.002)


def test_an_engine_without_log_probs_under_truncation_is_compared_without_truncation(probed):
    truncated = ("rollout.temperature=0.7", "rollout.top_p=0.9", "rollout.top_k=5")
    [silent], _ = probed(*truncated, kind=Silent)
    [open_], _ = probed(*truncated)
    assert [silent["sampled"][name] for name in ("temperature", "top_p", "top_k")] == [0.7, 1.0, 0]
    assert [open_["sampled"][name] for name in ("temperature", "top_p", "top_k")] == [0.7, 0.9, 5]
    with pytest.raises(ConformanceError):
        probed(*truncated, kind=Silent, factor=1.5)


def test_a_process_probes_where_it_starts_and_after_its_first_update(probed):
    assert len(probed(start=0)[0]) == 1
    for start, version in ((1, 0), (2, 0), (4, 4)):  # the last: nothing is left to do
        assert probed(start=start, version=version) == ([], [])


def probe(*, floor: float = 0.0, **figures: float) -> Probe:
    close = {"tokens": 100, "max": 1e-6, "mean": 1e-7, "p99": 1e-6, "k3": 0.0, "probability": 1e-7}
    noise = Mismatch(**{**close, "max": floor, "mean": floor})
    return Probe(
        temperature=1.0, top_p=1.0, top_k=0, engine=Mismatch(**close | figures), floor=noise, unlikeliest=0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "quantization", "figures", "outcome"),
    [
        ("float32", "none", {"max": 5e-5}, PASS),
        ("float32", "none", {"max": 6e-5}, CORRECTED),
        ("float32", "none", {"max": 6e-5, "floor": 1e-5}, PASS),
        ("bfloat16", "none", {"max": 0.2, "mean": 5e-3, "k3": 2e-3}, PASS),
        ("bfloat16", "none", {"mean": 6e-3}, CORRECTED),
        ("bfloat16", "none", {"mean": 6e-3, "floor": 3e-3}, PASS),
        ("float32", "nf4", {"max": 6e-5, "mean": 5e-3}, PASS),
        ("float32", "nf4", {"k3": 2.1e-3}, CORRECTED),
        ("bfloat16", "none", {"probability": 0.011, "floor": 1.0}, REFUSED),
        ("bfloat16", "nf4", {"k3": 1.1e-2, "floor": 1.0}, REFUSED),
        ("float32", "none", {"k3": np.nan}, REFUSED),
        ("bfloat16", "none", {"probability": np.nan}, REFUSED),
    ],
    ids=str,
)
def test_the_outcome_follows_from_the_figures_and_the_own_noise(dtype, quantization, figures, outcome):
    model = dataclasses.replace(tiny("tiny-student", lora=True, quantization=quantization), dtype=dtype)
    assert judge(probe(**figures), model) == outcome


def test_the_manifest_of_a_continued_run_holds_the_first_two_versions_and_nothing_else(plan_for, untouched):
    plan = plan_for("continued")
    finish(plan)
    manifest = Path(plan.run_dir) / "checkpoints" / "step-4" / "manifest.json"
    manifest.unlink()  # the next life starts from step 2
    finish(plan)
    assert bytes_of(plan) == untouched
    assert [found["version"] for found in json.loads(manifest.read_text())["metadata"]["probes"]] == [0, 1]
    with JournalReader.read_only(plan.run_dir) as journal:
        assert [facts[PROBE]["version"] for _, _, facts in journal.notes() if PROBE in facts] == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_first_checkpoint_written_again_after_later_probes_has_the_same_bytes(plan_for):
    plan = plan_for("again", "trainer.save_freq=1")
    finish(plan)
    first = Path(plan.run_dir) / "checkpoints" / "step-1" / "manifest.json"
    before = first.read_bytes()
    for folder in first.parent.parent.iterdir():
        (folder / "manifest.json").unlink()
    finish(plan)
    assert first.read_bytes() == before
