"""This file holds every metric of a run, declared once: name, unit, how its parts reduce to one number a step.

Names are verl's where the meaning is equal, so that panels made for verl keep working.
``python -m miniverl.metrics.declared`` prints the table of docs/metrics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reduce = Literal["objective", "token_mean", "row_mean", "sum", "max", "last"]

REDUCTIONS: dict[Reduce, str] = {
    "objective": "sum of weight x value over the response tokens, divided by the denominator of loss_agg_mode",
    "token_mean": "mean over the response tokens of the step",
    "row_mean": "mean over the trajectories of the step",
    "sum": "added up over the step",
    "max": "largest value of the step",
    "last": "the value as it stands at the end of the step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number a step."""

    name: str
    """As it appears in metrics.jsonl, in W&B and in a step report."""
    unit: str
    reduce: Reduce
    help: str
    """One sentence for a reader of the table."""
    side: bool = False
    """A fact that may differ between two equal runs (a clock, how work was cut): never part of a step report."""

    def __str__(self) -> str:
        return self.name


# What is learned

DISTILLATION_LOSS = Metric(
    name="actor/distillation/loss",
    unit="nats/token",
    reduce="objective",
    help="Divergence between teacher and student; for sampled k1 the mean of log p_student - log p_teacher.",
)
STUDENT_MASS = Metric(
    name="actor/distillation/student_mass",
    unit="probability",
    reduce="token_mean",
    help="Student's probability on the teacher's top-k ids.",
)
TEACHER_MASS = Metric(
    name="actor/distillation/teacher_mass",
    unit="probability",
    reduce="token_mean",
    help="Teacher's probability on its own top-k ids; far below 1 the tail cell carries the signal.",
)
PG_LOSS = Metric(
    name="actor/pg_loss",
    unit="1",
    reduce="objective",
    help="Policy-gradient objective (sampled k1): its gradient is meant, its value is not a distance.",
)
GRAD_NORM = Metric(
    name="actor/grad_norm",
    unit="L2",
    reduce="last",
    help="Norm of the gradient before clipping.",
)
LEARNING_RATE = Metric(
    name="actor/lr",
    unit="1",
    reduce="last",
    help="Learning rate of the last update.",
)
ENTROPY = Metric(
    name="actor/entropy",
    unit="nats/token",
    reduce="token_mean",
    help="Entropy of the student at the temperature it is scored at.",
)
SKIPPED_UPDATES = Metric(
    name="actor/skipped_updates",
    unit="updates",
    reduce="sum",
    help="Updates skipped because the loss or its gradient was not finite.",
)

# What was generated

RESPONSE_LENGTH_MEAN = Metric(
    name="response_length/mean",
    unit="tokens",
    reduce="row_mean",
    help="Response tokens per trajectory, stop token included.",
)
RESPONSE_LENGTH_MAX = Metric(
    name="response_length/max",
    unit="tokens",
    reduce="max",
    help="Longest response.",
)
CLIP_RATIO = Metric(
    name="response_length/clip_ratio",
    unit="share",
    reduce="row_mean",
    help="Trajectories that ran into the response limit.",
)
UNIQUE_PROMPTS = Metric(
    name="rollout/unique_prompts",
    unit="prompts",
    reduce="last",
    help="Different prompts in the step.",
)
GROUPS = Metric(
    name="rollout/groups",
    unit="groups",
    reduce="sum",
    help="Groups learned from.",
)
TRAJECTORIES = Metric(
    name="rollout/trajectories",
    unit="trajectories",
    reduce="sum",
    help="Trajectories learned from.",
)
GENERATED_TOKENS = Metric(
    name="rollout/generated_tokens",
    unit="tokens",
    reduce="sum",
    help="Response tokens learned from.",
)
PHYSICAL_BATCHES = Metric(
    name="rollout/physical_batches",
    unit="batches",
    reduce="sum",
    help="Generation batches the engine really ran; says nothing about n.",
    side=True,
)
GROUP_VARIANCE_MEAN = Metric(
    name="reward/group_variance_mean",
    unit="reward^2",
    reduce="row_mean",
    help="Population variance of the reward within a group, mean over groups; absent without rewards.",
)

# Whether the rollout sampled from the policy that is trained

PROBS_DIFF_MEAN = Metric(
    name="training/rollout_probs_diff_mean",
    unit="probability",
    reduce="token_mean",
    help="|p_trainer - p_rollout| of the sampled tokens; below 0.005 is healthy, above 0.01 something is broken.",
)
PROBS_DIFF_MAX = Metric(
    name="training/rollout_probs_diff_max",
    unit="probability",
    reduce="max",
    help="Largest |p_trainer - p_rollout|.",
)
LOGP_DIFF_MAX = Metric(
    name="training/rollout_logp_diff_max",
    unit="nats",
    reduce="max",
    help="Largest |log p_trainer - log p_rollout|.",
)

# Evaluation

ACCURACY = Metric(
    name="val/accuracy",
    unit="share",
    reduce="last",
    help="Held-out prompts the student answers exactly, greedy; only at steps that evaluate, 0 is before training.",
)

# Where the time went

TIME_STEP = Metric(
    name="timing_s/step",
    unit="s",
    reduce="last",
    help="The whole step, evaluation and checkpoint apart.",
    side=True,
)
TIME_EVALUATE = Metric(
    name="timing_s/testing",
    unit="s",
    reduce="last",
    help="Evaluation and conformance probes; only at steps that have them.",
    side=True,
)
TIME_SAVE = Metric(
    name="timing_s/save_checkpoint",
    unit="s",
    reduce="last",
    help="Checkpoint; only at steps that save.",
    side=True,
)

ALL: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""Every declared metric, in order of declaration. Nothing else is logged."""

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in ALL}


def table() -> str:
    """Every metric as Markdown: the text of docs/metrics.md."""
    lines = [
        "# Metrics",
        "",
        "Generated by `python -m miniverl.metrics.declared`; edit the declarations, not this page.",
        "One number a step. *Side* facts may differ between two equal runs: they go to W&B and to the journal's side",
        "table, never into a step report or metrics.jsonl.",
        "",
        "| metric | unit | reduces by | side | what it says |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| `{m.name}` | {m.unit} | {m.reduce} | {'yes' if m.side else ''} | {_cell(m.help)} |" for m in ALL]
    lines += ["", "How the parts of a step reduce:", ""]
    lines += [f"- **{name}**: {meaning}" for name, meaning in REDUCTIONS.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(table(), end="")
