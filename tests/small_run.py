"""This file holds the small run of the end-to-end tests: the quickstart with few steps and few prompts."""

import hashlib
import sys
from pathlib import Path

from miniverl.report.inspect import inspect_run

STEPS = 6
SMALL = (
    f"trainer.total_training_steps={STEPS}",
    "trainer.save_freq=3",
    "trainer.test_freq=3",
    "trainer.val_prompts=16",
    "data.train_batch_size=8",
    "trainer.ppo_max_token_len_per_gpu=128",  # several parcels a step
    "optim.lr_warmup_steps=1",
)


def command(*words: str) -> tuple[str, ...]:
    """miniverl with this interpreter."""
    return (sys.executable, "-m", "miniverl", *words)


def result_of(run_dir: Path) -> dict[str, object]:
    """What equal runs have in common: digests of adapter and optimizer files, and the journal's chain head."""
    newest = max((run_dir / "checkpoints").iterdir(), key=lambda folder: int(folder.name.removeprefix("step-")))
    files = [*sorted((run_dir / "final").iterdir()), *sorted(newest.iterdir())]
    found = {str(file.relative_to(run_dir)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    facts = inspect_run(run_dir)
    return {**found, "chain head": facts["chain_head"], "rows": facts["rows"], "cursor": facts["cursor"]}
