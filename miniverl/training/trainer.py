"""This file holds PolicyTrainer: the owner of the trained weights, the optimizer and the policy version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.parcel import Parcel
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.report import Checkpoint, KeptGroup, StepReport
from miniverl.contract.scores import Scores
from miniverl.contract.targets import TeacherTargets
from miniverl.errors import IdentityError, RecordError, TrainingError
from miniverl.losses.reduction import weights
from miniverl.metrics import declared
from miniverl.models import adapter
from miniverl.models.dequantize import dequantized_digest
from miniverl.models.device import device_for
from miniverl.models.load import load_base, torch_dtype
from miniverl.models.logprobs import Head, chunks, response_hidden
from miniverl.plan.plan import TrainerPlan
from miniverl.record.checkpoint import read_checkpoint, write_checkpoint
from miniverl.record.export import publish
from miniverl.record.facts import Facts
from miniverl.seeds import derive_seed
from miniverl.training.objective import Objective, Positions
from miniverl.training.optimizer import Optimizer
from miniverl.training.packer import MicroBatch, micro_batches
from miniverl.training.schedule import learning_rate
from miniverl.training.tally import Tally

ADAPTER_FILE, OPTIMIZER_FILE = "adapter.safetensors", "optimizer.safetensors"


class PolicyTrainer:
    """Accumulates Σ w·l over a step's parcels and divides once, so that no split of the step changes the gradient."""

    def __init__(self, plan: TrainerPlan, *, run_dir: str) -> None:
        self._plan = plan
        self._run_dir = run_dir
        module = load_base(plan.model, device=device_for(plan.share))
        self._base_digest = dequantized_digest(module)
        self._module = adapter.attach(module, plan.model, seed=plan.seed).train()
        if plan.gradient_checkpointing:
            self._module.gradient_checkpointing_enable({"use_reentrant": False})
        self._parameters = adapter.trainable(self._module)
        self._optimizer = Optimizer(plan.optim, self._parameters)
        self._objective = Objective(plan.objective)
        self._version = self._updates = 0
        self._report: StepReport | None = None
        self._adopt()

    def restore(self, folder: str | None) -> None:
        if folder is None:
            assert self._version == 0, "a trainer that has learned is not the untrained student"
            return
        tensors, manifest = read_checkpoint(Path(folder))
        adapter.write(self._module, tensors[ADAPTER_FILE])
        self._optimizer.restore(tensors[OPTIMIZER_FILE])
        self._version, self._updates = manifest.step, manifest.metadata["updates"]
        self._report = None
        self._adopt()
        if self._tensor_digest != manifest.metadata["tensor_digest"]:
            raise RecordError(
                "checkpoint", value=folder, problem="its tensors are not the ones its manifest names",
                fix="remove the folder; the run continues from the checkpoint before it",
            )  # fmt: skip

    def policy(self) -> Policy:
        tensors = adapter.read(self._module)
        model = self._plan.model
        snapshot = PolicySnapshot(
            version=self._version,
            model_id=model.id,
            model_revision=model.revision,
            tokenizer_digest=model.tokenizer_digest,
            adapter_manifest=adapter.manifest_digest(model, list(tensors)),
            tensor_digest=self._tensor_digest,
            base_digest=self._base_digest,
            dtype=model.dtype,
            quantization=model.quantization,
            backend=self._plan.backend,
            backend_version=self._plan.backend_version,
            profile="native",
            experiment=self._plan.experiment,
        )
        return Policy(snapshot=snapshot, tensors=tensors)

    def begin(self, step: int) -> None:
        assert step == self._version + 1, f"step {step} cannot follow version {self._version}"
        self._forget()

    def add(self, parcel: Parcel, targets: TeacherTargets | None) -> None:
        """Raises IdentityError for groups of another policy, TrainingError for targets that do not fit the parcel."""
        if targets is None:
            raise TrainingError(
                "teacher", value=None, problem=f"step {parcel.step}: a teacher without signal teaches nothing",
                fix="check the teacher's log",
            )  # fmt: skip
        self._refuse_other_policies(parcel)
        self._refuse_other_targets(parcel, targets)
        for batch in micro_batches(parcel, budget=self._plan.micro_batch_tokens):
            self._backward(batch, targets)
        self._tally.add_parcel(parcel)
        self._received += [KeptGroup(id=group.id, digest=group.digest) for group in parcel.kept]

    @torch.no_grad()
    def score(self, parcel: Parcel, temperature: float) -> Scores:
        """Raises IdentityError for groups of another policy."""
        self._refuse_other_policies(parcel)
        self._module.eval()
        packed, likeliest = self._own_scores(parcel, temperature, budget=self._plan.micro_batch_tokens)
        alone, _ = self._own_scores(parcel, temperature, budget=0)
        self._module.train()
        return Scores(packed=packed, alone=alone, likeliest=likeliest)

    def update(self, step: int, expected: Sequence[KeptGroup]) -> StepReport:
        if self._report is not None and self._report.step == step:
            return self._report
        self._refuse_unless_received(step, expected)
        norm, done = self._optimizer.apply(step, denominator=self._tally.denominator)
        self._version += 1
        self._updates += done
        metrics = {
            **self._tally.metrics(),
            declared.GRAD_NORM.name: norm,
            declared.LEARNING_RATE.name: learning_rate(self._plan.optim, step),
            declared.SKIPPED_UPDATES.name: float(not done),
        }
        self._adopt()
        self._report = StepReport(
            step=step,
            updates=self._updates,
            skipped=int(not done),
            tensor_digest=self._tensor_digest,
            metrics=metrics,
        )
        return self._report

    def save(self, step: int, facts: Facts, scheduled: bool) -> Checkpoint:
        assert step == self._version, f"step {step} is not what version {self._version} can save"
        return write_checkpoint(
            self._run_dir,
            step=step,
            facts=facts,
            tensors={ADAPTER_FILE: adapter.read(self._module), OPTIMIZER_FILE: self._optimizer.state()},
            metadata={"updates": self._updates, "tensor_digest": self._tensor_digest, "probes": facts.probes},
            scheduled=scheduled,
        )

    def export(self, folder: str) -> None:
        publish(
            folder,
            lambda draft: adapter.export(self._module, self._plan.model, draft),
            step=self._version,
            tensor_digest=self._tensor_digest,
        )

    def _adopt(self) -> None:
        """Whatever the weights are now is the policy in force."""
        self._tensor_digest = tensors_digest(adapter.read(self._module))
        self._forget()

    def _forget(self) -> None:
        self._optimizer.zero()
        self._tally = Tally()
        self._received: list[KeptGroup] = []
        self._passes = 0

    def _backward(self, batch: MicroBatch, targets: TeacherTargets) -> None:
        """The LM head in chunks: each chunk goes back to a leaf, the leaf once through the model."""
        hidden_NH, ids_N = self._forward(batch)
        leaf_NH = hidden_NH.detach().requires_grad_()
        head = Head(self._module, vocabulary=self._plan.model.vocabulary)
        rows = weights(self._objective.plan.loss_agg_mode, batch.lengths, horizon=self._objective.plan.horizon)
        weights_N = rows.token.float().repeat_interleave(batch.lengths).to(ids_N.device)
        behaviour_N, rollout_N = batch.behaviour_logps(), batch.rollout_logps()
        for chunk in chunks(len(ids_N), self._plan.logprob_chunk):
            positions = Positions(
                logps_CV=head.logps(leaf_NH[chunk], temperature=self._objective.plan.temperature),
                ids_C=ids_N[chunk],
                weights_C=weights_N[chunk],
                behaviour_C=None if behaviour_N is None else behaviour_N[chunk].to(ids_N.device),
                where=slice(batch.positions.start + chunk.start, batch.positions.start + chunk.stop),
            )  # fmt: skip
            loss = self._objective.loss(positions, targets)
            loss.total.backward()
            self._tally.add_loss(loss.metrics, positions.weights_C)
            self._tally.add_positions(positions, None if rollout_N is None else rollout_N[chunk].to(ids_N.device))
        hidden_NH.backward(leaf_NH.grad)
        self._tally.denominator += float(rows.share.sum())

    def _own_scores(self, parcel: Parcel, temperature: float, *, budget: int) -> tuple[np.ndarray, np.ndarray]:
        """Log-probs of the response tokens and the likeliest ids in their place, [N] each."""
        head = Head(self._module, vocabulary=self._plan.model.vocabulary)
        logps, likeliest = [], []
        for batch in micro_batches(parcel, budget=budget):
            hidden_NH, ids_N = self._hidden(batch)
            for chunk in chunks(len(ids_N), self._plan.logprob_chunk):
                logps_CV = head.logps(hidden_NH[chunk], temperature=temperature)
                logps.append(logps_CV.gather(1, ids_N[chunk][:, None])[:, 0].cpu())
                likeliest.append(logps_CV.argmax(1).cpu())
        return torch.cat(logps).numpy(), torch.cat(likeliest).numpy()

    def _forward(self, batch: MicroBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Dropout derives from (run, step, pass): a checkpoint holds no state of a random number generator."""
        torch.manual_seed(derive_seed("dropout", self._plan.seed, self._version, self._passes))
        self._passes += 1
        return self._hidden(batch)

    def _hidden(self, batch: MicroBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Hidden states that predict the response tokens, [N, H], and those tokens' ids, [N]."""
        dtype = torch_dtype(self._plan.model.dtype)
        masters = self._plan.model.lora is None and dtype != torch.float32  # fp32 weights that compute in bf16
        with torch.autocast(self._module.device.type, dtype=dtype, enabled=masters):
            return response_hidden(self._module, batch.rows)

    def _refuse_other_policies(self, parcel: Parcel) -> None:
        for group in parcel.groups:
            if (group.policy_version, group.tensor_digest) != (self._version, self._tensor_digest):
                raise IdentityError(
                    f"group {group.id}", value=group.policy_version,
                    problem=f"was drawn by another policy than version {self._version}",
                    fix="synchronize the rollout engine before it generates",
                )  # fmt: skip

    def _refuse_other_targets(self, parcel: Parcel, targets: TeacherTargets) -> None:
        ids = tuple(group.id for group in parcel.kept)
        temperature = self._objective.plan.temperature
        if (targets.group_ids, targets.positions, targets.temperature) != (ids, parcel.response_tokens, temperature):
            raise TrainingError(
                "teacher.targets (groups, positions, temperature)",
                value=(len(targets.group_ids), targets.positions, targets.temperature),
                problem=f"the parcel has {(len(ids), parcel.response_tokens, temperature)}",
                fix="score every kept response token of the parcel, in order",
            )  # fmt: skip

    def _refuse_unless_received(self, step: int, expected: Sequence[KeptGroup]) -> None:
        """Ray skips an ``add`` whose teacher failed; without this list the update would learn from the rest."""
        if not expected or list(expected) != self._received:
            raise TrainingError(
                f"step {step}", value=[group.id for group in self._received],
                problem=f"the journal kept {[group.id for group in expected]}: not what the trainer received",
                fix="start the step again; nothing was updated",
            )  # fmt: skip
