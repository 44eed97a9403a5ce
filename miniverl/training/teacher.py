"""This file holds ModelTeacher: a frozen model that judges every token of the student's samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from miniverl.contract.canonical import json_digest, tensors_digest
from miniverl.contract.group import Group
from miniverl.contract.parcel import Parcel
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import Sampling, requests_for
from miniverl.contract.targets import TeacherTargets
from miniverl.data.template import ChatTemplate
from miniverl.engines.cached.engine import CachedEngine
from miniverl.errors import TrainingError
from miniverl.models.device import device_for
from miniverl.models.frozen import FrozenModel
from miniverl.models.load import load_base
from miniverl.models.logprobs import Head, chunks, response_hidden
from miniverl.plan.plan import TeacherPlan
from miniverl.training.packer import MicroBatch, micro_batches


class ModelTeacher:
    """Scores parcels in cursor order, in batches by token budget; keeps no state between calls."""

    def __init__(self, plan: TeacherPlan) -> None:
        self._plan = plan
        self._module = load_base(plan.model, device=device_for(plan.share))

    @torch.inference_mode()
    def score(self, parcel: Parcel) -> TeacherTargets:
        """Targets for every response token of the kept groups, in the representation the objective asks for.

        Raises TrainingError when the teacher's logits are not finite: a teacher without signal teaches nothing.
        """
        parts = [self._score(batch) for batch in micro_batches(parcel, budget=self._plan.batch_tokens)]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        if not all(np.isfinite(column.max(initial=0.0)) for column in columns.values()):
            raise TrainingError(
                "models.teacher", value=self._plan.model.id, problem=f"log-probs of step {parcel.step} are not finite",
                fix="check the teacher's weights and dtype",
            )  # fmt: skip
        return TeacherTargets(
            group_ids=tuple(group.id for group in parcel.kept),
            temperature=self._plan.objective.temperature,
            **columns,
        )

    def _score(self, batch: MicroBatch) -> dict[str, np.ndarray]:
        hidden, ids = response_hidden(self._module, batch.rows)
        head = Head(self._module, vocabulary=self._plan.model.vocabulary)
        temperature = self._plan.objective.temperature
        parts = [
            self._represent(head.logps(hidden[chunk], temperature=temperature), ids[chunk])
            for chunk in chunks(len(ids), self._plan.logprob_chunk)
        ]
        return {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}

    def _represent(self, logps_CV: torch.Tensor, ids_C: torch.Tensor) -> dict[str, torch.Tensor]:
        """A full vocabulary never leaves this process unless the objective asks for the exact distribution."""
        if self._plan.objective.name == "sampled_k1":
            return {"sampled": logps_CV.gather(1, ids_C[:, None])[:, 0]}
        if self._plan.objective.topk is None:
            return {"exact": logps_CV}
        top_logps, top_ids = logps_CV.topk(self._plan.objective.topk, dim=-1)
        tail = logps_CV.scatter(1, top_ids, -torch.inf).logsumexp(-1)
        return {"top_ids": top_ids.int(), "top_logps": top_logps, "tail": tail}

    def evaluate(self, prompts: Sequence[Prompt], sampling: Sampling) -> tuple[Group, ...]:
        """The teacher's own answers, by the engine the student is evaluated with, from the module it scores with."""
        engine = CachedEngine(
            FrozenModel(self._module, vocabulary=self._plan.model.vocabulary),
            decode=ChatTemplate(self._plan.model.path).decode,
            slots=self._plan.evaluation_slots,
            max_length=self._plan.max_length,
            deterministic=False,  # asked once and recorded: nothing is ever compared with it
        )
        policy = Policy(snapshot=self._snapshot(), tensors={})
        engine.synchronize(policy)
        requests = requests_for(list(enumerate(prompts)), policy.snapshot, samples=1, sampling=sampling, run_seed=0)
        groups = tuple(sorted(engine.generate(requests), key=lambda group: group.cursor))
        engine.close()
        return groups

    def _snapshot(self) -> PolicySnapshot:
        model = self._plan.model
        return PolicySnapshot(
            version=0, model_id=model.id, model_revision=model.revision, tokenizer_digest=model.tokenizer_digest,
            adapter_manifest=json_digest({"lora": None, "names": []}), tensor_digest=tensors_digest({}), base_digest="",
            dtype=model.dtype, quantization=model.quantization, backend="hf_cached", backend_version="",
            profile="native", experiment="",
        )  # fmt: skip
