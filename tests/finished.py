"""This file holds what tests do with a whole run in one process: finish it, and take the bytes equal runs share."""

from __future__ import annotations

from pathlib import Path

from miniverl.plan.plan import Plan
from miniverl.record.reader import JournalReader
from miniverl.training.local import run_locally
from miniverl.training.roles import Roles


def bytes_of(plan: Plan) -> dict[str, object]:
    """What must be equal between equal runs: files of the last checkpoint, metrics and the journal's chain head."""
    folder = Path(plan.run_dir)
    last = max((folder / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    files = {path.name: path.read_bytes() for path in sorted(last.iterdir())}
    journal = JournalReader.read_only(folder)
    head = journal.facts().chain_head
    journal.release()
    return {
        **files,
        "chain": head,
        "metrics": (folder / "metrics.jsonl").read_bytes(),
        "final": (folder / "final" / "adapter_model.safetensors").read_bytes(),
    }


def finish(plan: Plan, **options) -> Roles:
    roles = run_locally(plan, **options)
    roles.journal.release()
    return roles
