"""This file holds the optimizer: AdamW on the trainable tensors, with a state that is plain named arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from miniverl.plan.plan import OptimPlan
from miniverl.training.schedule import learning_rate

MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimizer:
    """AdamW (Loshchilov & Hutter, 2019) with gradient clipping by global norm."""

    def __init__(self, plan: OptimPlan, parameters: Mapping[str, nn.Parameter]) -> None:
        self._plan = plan
        self._parameters = dict(parameters)
        self._adamw = torch.optim.AdamW(
            self._parameters.values(), lr=plan.lr, betas=plan.betas, eps=plan.eps, weight_decay=plan.weight_decay
        )

    def zero(self) -> None:
        self._adamw.zero_grad(set_to_none=True)

    def apply(self, step: int, *, denominator: float) -> tuple[float, bool]:
        """Divides the accumulated gradient, clips it and steps, unless it is not finite.

        Returns the norm before clipping and whether the update was done.
        """
        gradients = [parameter.grad for parameter in self._parameters.values() if parameter.grad is not None]
        for gradient in gradients:
            gradient /= denominator
        norm = torch.nn.utils.get_total_norm(gradients)
        finite = bool(torch.isfinite(norm))
        if finite:
            torch.nn.utils.clip_grads_with_norm_(self._parameters.values(), self._plan.clip_grad, norm)
            self._adamw.param_groups[0]["lr"] = learning_rate(self._plan, step)
            self._adamw.step()
        self.zero()
        return norm.item(), finite

    def state(self) -> dict[str, np.ndarray]:
        """Moments and step counts by ``<kind>.<parameter>``, on the host; empty before the first update."""
        return {
            f"{kind}.{name}": value.detach().cpu().numpy().copy()
            for name, parameter in self._parameters.items()
            for kind, value in self._adamw.state[parameter].items()
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Takes up a state made by ``state()``."""
        for name, parameter in self._parameters.items():
            state = {
                kind: torch.from_numpy(np.array(arrays[f"{kind}.{name}"]))
                for kind in (*MOMENTS, "step")
                if f"{kind}.{name}" in arrays
            }
            self._adamw.state[parameter] = {
                kind: value.to(parameter.device) if kind in MOMENTS else value for kind, value in state.items()
            }
