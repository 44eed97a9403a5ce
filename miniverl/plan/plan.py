"""This file holds Plan: recipe, data and model identities frozen into slices, one for each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from miniverl.contract.canonical import json_digest
from miniverl.contract.request import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraPlan:
    """PEFT's names."""

    r: int
    lora_alpha: int
    lora_dropout: float
    target_modules: str | tuple[str, ...]
    """all-linear (every linear layer but the LM head) or module names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """One model, resolved to files on this machine."""

    id: str
    """As the recipe names it."""
    path: str
    """Absolute folder with config.json, safetensors and tokenizer.json."""
    revision: str
    """SHA-256 over the weight and config files."""
    tokenizer_digest: str
    """SHA-256 over vocabulary, merges and added tokens: equal digests are one tokenizer."""
    vocabulary: int
    """Ids the tokenizer can produce; rows of the head beyond it never enter a distribution."""
    dtype: str
    """float32 or bfloat16."""
    quantization: str
    """none or nf4."""
    lora: LoraPlan | None
    """None: full weights (student) or frozen (teacher)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """What one role may use."""

    gpu: float
    """Fraction of a GPU, 0..1."""
    cpu: float
    """CPUs reserved in Ray."""
    threads: int
    """Torch threads; changes float sums, so it belongs to the execution digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePlan:
    """Which loss, and how its tokens are weighed."""

    name: str
    """gkd or sampled_k1."""
    divergence: str
    """gkd only: forward_kl (teacher||student), reverse_kl (student||teacher) or jsd."""
    jsd_beta: float
    """Weight of the teacher in the JSD mixture, 0 < beta < 1."""
    topk: int | None
    """gkd only: teacher ids sent per position; None sends the exact distribution."""
    temperature: float
    """Temperature teacher and trainer score at; the rollout's own unless the recipe names another."""
    loss_agg_mode: str
    """verl's names: token-mean, seq-mean-token-sum, seq-mean-token-mean, seq-mean-token-sum-norm."""
    horizon: int
    """Response limit: the constant L of seq-mean-token-sum-norm."""
    rollout_is: str | None
    """token: truncated importance sampling per token; None: off."""
    rollout_is_threshold: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimPlan:
    lr: float
    betas: tuple[float, float]
    eps: float
    weight_decay: float
    clip_grad: float
    """Largest gradient norm; inf switches clipping off."""
    lr_scheduler_type: str
    """constant, linear or cosine."""
    lr_warmup_steps: int
    schedule_steps: int
    """Length of the schedule in steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmPlan:
    """A managed server, resolved for this machine."""

    python: str
    """Absolute path of the interpreter that has vLLM."""
    version: str
    """Of vLLM there."""
    keep_warm: bool
    enforce_eager: bool
    kv_cache_bytes: int
    """Memory for keys and values."""
    startup_timeout: int
    """Seconds."""
    folder: str
    """Absolute; inside the run directory: the dequantized base, adapters, the server's log and its process ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    model: ModelPlan
    backend: str
    """hf_cached, hf_reference or vllm."""
    backend_version: str
    """Name and version of the library it runs on, as snapshots carry them."""
    slots: int
    """Rows decoded at once."""
    max_length: int
    """Prompt limit + response limit in tokens: the length of a slot's cache."""
    parcel_tokens: int
    """Padded tokens of a parcel."""
    deterministic: bool
    compile_backend: bool
    vllm: VllmPlan | None
    """None: another backend."""
    share: DeviceShare


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerPlan:
    model: ModelPlan
    objective: ObjectivePlan
    optim: OptimPlan
    micro_batch_tokens: int
    """Padded tokens of one forward and backward pass."""
    logprob_chunk: int
    """Response positions whose logits exist at once."""
    gradient_checkpointing: bool
    seed: int
    backend: str
    """Rollout backend named in the snapshot."""
    backend_version: str
    experiment: str
    share: DeviceShare


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherPlan:
    model: ModelPlan
    objective: ObjectivePlan
    batch_tokens: int
    """Padded tokens of one forward pass."""
    logprob_chunk: int
    evaluation_slots: int
    """Rows decoded at once when the teacher itself is evaluated."""
    max_length: int
    share: DeviceShare


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    path: str
    """Absolute."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlan:
    files: tuple[DataFile, ...]
    prompt_key: str
    max_prompt_length: int
    truncation: str
    """error, left or right."""
    filter_overlong_prompts: bool
    """Drop prompts over the limit (counted and said) instead of truncating or refusing."""
    tokenizer_path: str
    """Folder with tokenizer.json and the chat template."""
    template_digest: str
    """SHA-256 of the chat template."""
    prompts: int
    """Usable prompts, after filtering."""
    digest: str
    """SHA-256 over the digests of the usable prompts and their ground truths, in file order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """How the cursor walks over the prompts."""

    shuffle: bool
    seed: int
    train_batch_size: int
    """Prompts per step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One unit that happens or does not."""

    number: int
    """Counts from 1."""
    cursor: int
    """Where its first wave starts."""
    groups: int
    """Groups it must keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePlan:
    total_training_steps: int
    save_freq: int
    """Checkpoint every so many steps, and at the end; 0: only at the end."""
    test_freq: int
    """Evaluate every so many steps, and at the end; 0: only at the end."""
    val_before_train: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingPlan:
    sinks: tuple[str, ...]
    """Of console, jsonl, wandb; jsonl is always on."""
    project: str
    experiment_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything resolved once. Parts receive their slice, never the recipe."""

    name: str
    run_id: str
    """Names the Ray namespace; derived from the absolute run directory."""
    run_dir: str
    """Absolute."""
    seed: int
    sampling: Sampling
    """Of training rollouts."""
    evaluation_sampling: Sampling
    samples_per_prompt: int
    conformance: str
    """gate or strict."""
    train_data: DataPlan
    evaluation_data: DataPlan | None
    evaluation_prompts: int
    """Held-out prompts asked at each evaluation."""
    order: OrderPlan
    schedule: SchedulePlan
    rollout: RolloutPlan
    trainer: TrainerPlan
    teacher: TeacherPlan
    tracking: TrackingPlan
    ray_address: str | None
    resume: str
    """auto, never or the path of a checkpoint."""
    placement: Mapping[str, DeviceShare]
    """By role: controller, trainer, rollout, teacher, journal."""
    experiment_facts: Mapping[str, object] = field(repr=False)
    """What enters the experiment digest, by dotted name; compared field by field when a run is continued."""
    execution_facts: Mapping[str, object] = field(repr=False)
    """What enters the execution digest: hardware, placement, versions, threads, paths, logging."""
    notes: tuple[str, ...] = ()
    """What the user should know: rows dropped, lengths cut, end ids united."""

    @property
    def experiment(self) -> str:
        return json_digest(self.experiment_facts)

    @property
    def execution(self) -> str:
        return json_digest(self.execution_facts)

    def steps(self, *, after: int, cursor: int) -> Iterator[Step]:
        """Steps that remain once ``after`` are finished and ``cursor`` prompts are taken."""
        for number in range(after + 1, self.schedule.total_training_steps + 1):
            yield Step(number=number, cursor=cursor, groups=self.order.train_batch_size)
            cursor += self.order.train_batch_size
