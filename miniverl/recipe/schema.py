"""This file holds Recipe: the closed schema of a native recipe, key by key.

Names follow verl (data, trainer, rollout), PEFT (lora) and torch (optim) wherever one of them has a name for the thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Block(BaseModel):
    """A group of keys. Closed: an unknown key is an error. Frozen: a recipe never changes once it is loaded."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _one_or_many(value: Any) -> Any:
    """``a.parquet`` means ``[a.parquet]``."""
    return (value,) if isinstance(value, str) else value


def _minus_one_is_off(value: Any) -> Any:
    """vLLM and verl write -1 for "keep all"; Hugging Face writes 0."""
    return 0 if type(value) is int and value == -1 else value


Files = Annotated[tuple[str, ...], BeforeValidator(_one_or_many), Field(strict=False)]
Strings = Annotated[tuple[str, ...], Field(strict=False)]
Momentum = Annotated[float, Field(ge=0.0, lt=1.0)]
Dtype = Literal["auto", "float32", "bfloat16"]
Quantization = Literal["none", "nf4"]


class Run(Block):
    dir: str | None = None
    """Run directory; runs/<name> when null."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Every random choice of the run derives from it."""
    resume: str = Field(default="auto", min_length=1)
    """auto: continue what the run directory holds; never: refuse a directory that holds a run; or a checkpoint."""


class Lora(Block):
    r: int = Field(default=32, ge=1, le=65_536)
    lora_alpha: int = Field(default=32, ge=1, le=1_000_000)
    """Scaling is lora_alpha / r; a fixed 32 keeps the learning rate independent of r."""
    lora_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    target_modules: str | Strings = "all-linear"
    """all-linear (every linear layer but the LM head), a list of module names, or a pattern of whole names."""


class Student(Block):
    id: str = Field(min_length=1)
    """A folder, a miniverl:// resource, or a hub name that is in the local hub cache."""
    dtype: Dtype = "auto"
    """auto: bfloat16 where trainer and rollout have a GPU, else float32."""
    quantization: Quantization = "none"
    """nf4: the trainer holds the base in 4 bits; the rollout samples from the same weights, dequantized."""
    lora: Lora | None = Lora()
    """null trains every weight."""
    gradient_checkpointing: bool = True
    """Saves activation memory, costs a second forward pass."""


class Teacher(Block):
    id: str = Field(min_length=1)
    """As the student's; must have the student's tokenizer."""
    dtype: Dtype = "auto"
    quantization: Quantization = "none"


class Models(Block):
    student: Student
    teacher: Teacher


class Data(Block):
    train_files: Files = Field(min_length=1)
    """Parquet files in verl's schema; one or a list."""
    val_files: Files = ()
    """Held-out prompts, asked greedily. None: no evaluation."""
    prompt_key: str = Field(default="prompt", min_length=1)
    """Column that holds the messages."""
    max_prompt_length: int = Field(default=512, ge=1)
    """Tokens, after the chat template."""
    truncation: Literal["error", "left", "right"] = "error"
    """What happens to a longer prompt."""
    filter_overlong_prompts: bool = False
    """Drop longer prompts (counted and said) instead."""
    train_batch_size: int = Field(default=32, ge=1)
    """Prompts per step."""
    shuffle: bool = True
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    """Of the order; null: run.seed."""


class Vllm(Block):
    """The managed server of backend: vllm."""

    python: str | None = Field(default=None, min_length=1)
    """Interpreter of the environment that has vLLM; null: the one `miniverl vllm setup` made, else this one."""
    keep_warm: bool = True
    """One server for the whole run; false: it ends before the teacher scores and starts again for the next step."""
    enforce_eager: Literal["auto", True, False] = "auto"
    """true: no compilation and no CUDA graphs. auto: true on the CPU, where compiling costs minutes."""
    kv_cache_gib: float | None = Field(default=None, gt=0.0)
    """GiB for keys and values; null: what the slots of the recipe need."""
    startup_timeout: int = Field(default=600, ge=1)
    """Seconds until a start is given up."""


class Rollout(Block):
    backend: Literal["hf_cached", "hf_reference", "vllm"] = "hf_cached"
    samples_per_prompt: int = Field(default=1, ge=1)
    """n: trajectories of one prompt, drawn independently."""
    prompt_batch_size: int | None = Field(default=None, ge=1)
    """Prompts decoded at once at most; null: all of a step."""
    max_padded_tokens: int = Field(default=16384, ge=1)
    """Tokens the key/value cache holds at most: its slots times (prompt limit + response limit)."""
    synchronization: Literal["strict"] = "strict"
    """strict: no token of a step is drawn under another policy version."""
    compile_backend: bool = False
    """hf_cached: compile the decode step (Inductor; CUDA graphs on a GPU). The first steps wait for the compiler."""
    conformance: Literal["gate", "strict"] = "gate"
    """gate: log-probs of rollout and trainer are compared by their own noise; strict: by fixed limits as well."""
    record_logprobs: bool = True
    """Record the log-prob of every sampled token."""
    temperature: float = Field(default=1.0, ge=0.0, le=100.0)
    """0 is greedy."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: Annotated[int, BeforeValidator(_minus_one_is_off)] = Field(default=0, ge=0)
    """0 or -1 keeps every id."""
    max_new_tokens: int = Field(default=1024, ge=1)
    """Response limit in tokens, the stop token included."""
    stop: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_one_or_many), Field(strict=False)
    ] = ()
    """Strings that end a response; one or a list. The tokens that complete one are kept, the text is cut before it."""
    deterministic: Literal["auto", True, False] = "auto"
    """Same bits for a row whoever shares its batch. auto: on on the CPU with one thread, off on a GPU (costs speed)."""
    vllm: Vllm = Vllm()


class Distillation(Block):
    divergence: Literal["forward_kl", "reverse_kl", "jsd"] = "reverse_kl"
    """gkd: forward_kl is KL(teacher||student), reverse_kl is KL(student||teacher)."""
    jsd_beta: float = Field(default=0.5, gt=0.0, lt=1.0)
    """jsd: weight of the teacher in the mixture."""
    topk: int | None = Field(default=64, ge=1)
    """gkd: likeliest teacher ids sent per position, the rest as one tail bucket; null: the exact distribution."""
    temperature: float | None = Field(default=None, gt=0.0, le=100.0)
    """What teacher and trainer score at; null: the temperature of the rollout."""
    loss_agg_mode: Literal["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"] = (
        "token-mean"
    )
    rollout_is: Literal["token"] | None = None
    """sampled_k1: truncated importance weights per token (its default); null: off."""
    rollout_is_threshold: float = Field(default=2.0, gt=0.0)
    """Where the importance weights are cut."""


class Optim(Block):
    """AdamW."""

    lr: float = Field(ge=0.0)
    """1e-4 with LoRA and 1e-5 for full weights, unless written."""
    betas: Annotated[tuple[Momentum, Momentum], Field(strict=False)] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    clip_grad: float = Field(default=1.0, gt=0.0, allow_inf_nan=True)
    """Largest gradient norm; .inf: off."""
    lr_scheduler_type: Literal["constant", "linear", "cosine"] = "constant"
    lr_warmup_steps: int = Field(default=0, ge=0)
    schedule_steps: int | None = Field(default=None, ge=1)
    """Length of the schedule; null: the length of the run."""


class Trainer(Block):
    total_training_steps: int | None = Field(default=None, ge=1)
    total_epochs: int | None = Field(default=None, ge=1)
    """Instead of total_training_steps: passes over the training prompts."""
    save_freq: int = Field(default=20, ge=0)
    """Checkpoint every so many steps, and at the end; 0: only at the end."""
    test_freq: int = Field(default=10, ge=0)
    """Evaluate every so many steps, and at the end; 0: only at the end."""
    val_before_train: bool = True
    val_prompts: int | None = Field(default=None, ge=1)
    """Held-out prompts asked at each evaluation; null: all."""
    ppo_max_token_len_per_gpu: int = Field(default=4096, ge=1)
    """Padded tokens of one micro-batch, of one teacher batch and of one parcel."""
    logprob_chunk: int = Field(default=256, ge=1)
    """Positions whose logits exist at once."""


class Share(Block):
    """What one role may use."""

    gpu: float = Field(default=0.0, ge=0.0, le=1.0)
    """Fraction of a GPU."""
    cpu: float = Field(default=0.4, ge=0.0)
    """CPUs reserved in Ray."""
    threads: int = Field(default=1, ge=1)
    """Threads of torch."""


class Placement(Block):
    mode: Literal["shared", "phases"] = "shared"
    """shared: roles work side by side on one card."""
    controller: Share = Share(cpu=0.1)
    trainer: Share = Share()
    rollout: Share = Share()
    teacher: Share = Share()
    journal: Share = Share(cpu=0.1)


class Tracking(Block):
    sinks: Annotated[tuple[Literal["console", "jsonl", "wandb"], ...], Field(strict=False)] = ("console", "jsonl")
    """Where metrics go; jsonl is always on."""
    project: str = Field(default="miniverl", min_length=1)
    experiment_name: str | None = Field(default=None, min_length=1)
    """null: the recipe's name."""


class Ray(Block):
    address: str | None = None
    """Cluster to attach to; null: RAY_ADDRESS if set, else a local one of our own."""


class Recipe(Block):
    """One run, as its user wrote it."""

    name: str = Field(min_length=1)
    """The file's name, unless written."""
    objective: Literal["gkd", "sampled_k1"]
    """gkd: a divergence over the vocabulary; sampled_k1: policy gradient of the reverse KL."""
    models: Models
    data: Data
    run: Run = Run()
    rollout: Rollout = Rollout()
    distillation: Distillation = Distillation()
    optim: Optim
    trainer: Trainer = Trainer()
    placement: Placement = Placement()
    tracking: Tracking = Tracking()
    ray: Ray = Ray()


def block_of(annotation: Any) -> type[Block] | None:
    """The block that a field's annotation names, also inside ``Block | None``."""
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, Block)), None)


def known_keys(block: type[Block] = Recipe, prefix: str = "") -> Iterator[str]:
    """Every dotted key of the schema, blocks included, in the order they are written."""
    for name, field in block.model_fields.items():
        yield prefix + name
        if (inner := block_of(field.annotation)) is not None:
            yield from known_keys(inner, f"{prefix}{name}.")
