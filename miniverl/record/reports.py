"""This file holds the text of a step report in the journal: JSON that bears metrics which are not finite."""

from __future__ import annotations

import json
import math

from miniverl.contract.canonical import canonical_json
from miniverl.contract.report import StepReport


def to_text(report: StepReport) -> str:
    """Canonical JSON; a metric that is not finite becomes its name ("nan", "inf", "-inf"), which JSON can hold."""
    facts = {name: getattr(report, name) for name in StepReport.__dataclass_fields__}
    metrics = {name: float(value) for name, value in report.metrics.items()}
    facts["metrics"] = {name: value if math.isfinite(value) else str(value) for name, value in metrics.items()}
    return canonical_json(facts).decode()


def from_text(text: str) -> StepReport:
    """The report again."""
    facts = json.loads(text)
    return StepReport(**facts | {"metrics": {name: float(value) for name, value in facts["metrics"].items()}})
