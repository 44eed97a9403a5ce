"""This file holds Workload: what the backends are asked for in a benchmark, and what they must reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from miniverl.contract.request import Sampling
from miniverl.errors import ConfigError
from miniverl.recipe.load import parse_block

Counts = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, strict=False)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Mode(Closed):
    """A way of sampling."""

    temperature: float = Field(ge=0.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    top_k: int = Field(default=0, ge=0)


class Gate(Closed):
    """What a ratio must reach in every cell it looks at."""

    faster: str
    slower: str
    at_least: float
    where: Mapping[str, int | str] = {}
    """Only cells with these values: prompt_tokens, response_tokens, samples, sampling."""
    purpose: Literal["required", "selection"] = "required"
    """selection: decides which backend is chosen; missing it fails nothing."""


class Workload(Closed):
    """Every combination of the lists is a cell; all backends compute a cell in turn."""

    name: str
    model: str | None = None
    """A folder or a miniverl:// resource; null: named on the command line."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    lora_rank: int = Field(default=8, ge=1)
    """Rank of the adapter, whose values are random and not small."""
    prompts: int = Field(default=4, ge=1)
    """Different real prompts."""
    prompt_tokens: Counts
    response_tokens: Counts
    samples: Counts
    sampling: Mapping[str, Mode]
    slots: int | None = Field(default=None, ge=1)
    """Rows decoded at once; null: all of a cell."""
    stop_every: int | None = Field(default=None, ge=2)
    """Every id divisible by this ends a response: lengths are mixed. null: every response has its full length."""
    warmups: int = Field(default=1, ge=0)
    repetitions: int = Field(ge=1)
    integrated: Mapping[str, int] = {}
    """Backends timed at so many prefix lengths per cell, whose time is integrated over the cell instead of spent."""
    refreshes: int = Field(default=8, ge=2)
    """Policies taken up one after the other."""
    logp_limit: float = 5e-5
    """Largest difference between recorded log-probs and those of a plain forward pass."""
    peak_gib: float | None = None
    """Most memory a backend may have held."""
    gates: Annotated[tuple[Gate, ...], Field(strict=False)] = ()

    def cells(self) -> list[Cell]:
        return [
            Cell(prompt_tokens=prompt, response_tokens=response, samples=samples, sampling=sampling)
            for prompt, response, samples, sampling in product(
                self.prompt_tokens, self.response_tokens, self.samples, self.sampling
            )
        ]

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return max(self.prompt_tokens) + max(self.response_tokens)

    @property
    def most_rows(self) -> int:
        return self.slots or self.prompts * max(self.samples)

    def sampling_of(self, cell: Cell, *, vocabulary: int) -> Sampling:
        stops = range(self.stop_every, vocabulary, self.stop_every) if self.stop_every else ()
        mode = self.sampling[cell.sampling]
        return Sampling(**mode.model_dump(), max_new_tokens=cell.response_tokens, stop_token_ids=tuple(stops))


class Cell(Closed):
    prompt_tokens: int
    response_tokens: int
    samples: int
    sampling: str

    def __str__(self) -> str:
        return f"{self.prompt_tokens} + {self.response_tokens}, n = {self.samples}, {self.sampling}"


BACKENDS = ("hf_reference", "hf_cached", "vllm")


def refuse_unknown_backends(named: Sequence[str]) -> None:
    for backend in named:
        if backend not in BACKENDS:
            raise ConfigError(
                "--backend", value=backend, problem="is no rollout backend", fix=f"write one of {', '.join(BACKENDS)}"
            )


def load_workload(source: str) -> Workload:
    """The workload in a YAML file, or the packaged one of that name. Raises ConfigError."""
    path = Path(source).expanduser()
    if not path.is_file():
        packaged = packaged_workloads()
        if source not in packaged:
            raise ConfigError(
                "--workload", value=source, problem="is neither a file nor the name of a packaged workload",
                fix=f"write a path, or one of {', '.join(packaged)}",
            )  # fmt: skip
        path = packaged[source]
    tree = {"name": path.stem, **parse_block(path.read_text(encoding="utf-8"), source=source)}
    return workload_from(tree, source=source)


def workload_from(tree: Mapping[str, Any], *, source: str) -> Workload:
    try:
        return Workload.model_validate(tree)
    except ValidationError as violations:
        first = violations.errors()[0]
        raise ConfigError(
            f"{source}: {'.'.join(map(str, first['loc']))}", value=first.get("input"), problem=first["msg"],
            fix="see configs/bench for examples",
        ) from None  # fmt: skip


def packaged_workloads() -> dict[str, Path]:
    package = Path(str(files("miniverl")))
    for folder in (package / "configs" / "bench", package.parent / "configs" / "bench"):
        if found := {path.stem: path for path in sorted(folder.glob("*.yaml"))}:
            return found
    return {}
