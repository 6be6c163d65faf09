"""The softmax over the legal tokens, and the logsumexp over the whole vocabulary, as functions with gradients in torch.

Both only keep the logits of a few positions at a time, forwards and backwards: the backward pass computes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

#: The number of logits in memory at a time, of legal tokens or, for ln Z, of the whole vocabulary. 64 MiB in 32 bits.
_CHUNK = 2**24


@dataclass(frozen=True)
class Plan:
    """Positions with the ids that were legal there.

    Attributes:
        rows, columns: the row and the column of each position in the batch, ``[positions]``.
        sets: the index of each position's set of legal ids, ``[positions]``.
        choice: the place of each position's token in the union, ``[positions]``.
        union: all ids of all sets, sorted, ``[union]``.
        masks: which ids of the union belong to each set, ``[sets, union]``.
    """

    rows: torch.Tensor
    columns: torch.Tensor
    sets: torch.Tensor
    choice: torch.Tensor
    union: torch.Tensor
    masks: torch.Tensor


class _Logits:
    """The logits of some ids at some positions, computed a few positions at a time."""

    def __init__(
        self,
        states: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        plan: Plan,
        temperature: float,
        ids: torch.Tensor | None,
    ) -> None:
        self.states, self.plan, self.temperature, self.ids = states, plan, temperature, ids
        self.product = states.dtype if weight is None else torch.promote_types(states.dtype, weight.dtype)
        self.sums = torch.promote_types(self.product, torch.float32)
        self.weight = self.bias = None
        if weight is not None:
            self.weight = (weight if ids is None else weight.index_select(0, ids)).to(self.product)
            if bias is not None:
                self.bias = (bias if ids is None else bias.index_select(0, ids)).to(self.product)
        width = states.shape[2] if weight is None else weight.shape[0]
        self.width = width if ids is None else len(ids)

    def chunks(self) -> list[slice]:
        """The parts of positions that are computed together."""
        size = max(_CHUNK // max(self.width, 1), 1)
        return [slice(start, start + size) for start in range(0, len(self.plan.rows), size)]

    def _index(self, part: slice) -> tuple[torch.Tensor, ...]:
        """The index of a part's states; if the states are logits, of the wanted ids only."""
        rows, columns = self.plan.rows[part], self.plan.columns[part]
        if self.weight is not None or self.ids is None:
            return rows, columns
        return rows[:, None], columns[:, None], self.ids[None, :]

    def of(self, part: slice) -> torch.Tensor:
        """The logits divided by the temperature, ``[positions, ids]``, in the type of sums."""
        states = self.states[self._index(part)].to(self.product)
        if self.weight is not None:
            states = torch.nn.functional.linear(states, self.weight, self.bias)
        return states.to(self.sums) / self.temperature


class _Gradients:
    """The gradients with respect to states and head, summed over the parts."""

    def __init__(self, logits: _Logits, needed: Sequence[bool]) -> None:
        self.logits = logits
        weight, bias = logits.weight, logits.bias
        self.states = torch.zeros_like(logits.states) if needed[0] else None
        self.weight = (
            torch.zeros_like(weight, dtype=logits.sums) if weight is not None and needed[1] else None
        )
        self.bias = torch.zeros_like(bias, dtype=logits.sums) if bias is not None and needed[2] else None

    def add(self, part: slice, gradient: torch.Tensor) -> None:
        """Adds the gradient with respect to the logits of a part, ``[positions, ids]``."""
        logits = self.logits
        gradient = (gradient / logits.temperature).to(logits.product)
        if logits.weight is None:
            if self.states is not None:
                self.states[logits._index(part)] = gradient.to(self.states.dtype)
            return
        if self.states is not None:
            self.states[logits._index(part)] = (gradient @ logits.weight).to(self.states.dtype)
        if self.weight is not None:
            states = logits.states[logits._index(part)].to(logits.product)
            self.weight += gradient.T @ states
        if self.bias is not None:
            self.bias += gradient.sum(0, dtype=logits.sums)

    def whole(
        self, weight: torch.Tensor | None, bias: torch.Tensor | None
    ) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the inputs. Rows of the head that were not used have gradient 0."""
        return self.states, self._spread(self.weight, weight), self._spread(self.bias, bias)

    def _spread(self, found: torch.Tensor | None, of: torch.Tensor | None) -> torch.Tensor | None:
        if found is None or of is None:
            return None
        found = found.to(of.dtype)
        return (
            found if self.logits.ids is None else torch.zeros_like(of).index_copy_(0, self.logits.ids, found)
        )


class LegalTerms(torch.autograd.Function):
    """ln p, entropy and ln Σ exp of the legal logits. The backward pass computes the logits again."""

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        plan: Plan,
        temperature: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with _plain(states):
            logits = _Logits(states, weight, bias, plan, temperature, plan.union)
            found = [torch.zeros(states.shape[:2], dtype=logits.sums, device=states.device) for _ in range(3)]
            for part in logits.chunks():
                values, mask = logits.of(part), plan.masks[plan.sets[part]]
                log_sum = values.masked_fill(~mask, float("-inf")).logsumexp(1)
                chosen = values.gather(1, plan.choice[part, None])[:, 0]
                log_p = _finite(values - log_sum[:, None]).masked_fill(~mask, 0)
                entropy = -(log_p.exp() * log_p).sum(1)
                for one, into in zip((chosen - log_sum, entropy, log_sum), found, strict=True):
                    into[plan.rows[part], plan.columns[part]] = one
        ctx.save_for_backward(states, weight, bias, found[1], found[2])
        ctx.plan, ctx.temperature = plan, temperature
        return found[0], found[1], found[2]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        states, weight, bias, entropy, log_sum = ctx.saved_tensors
        plan: Plan = ctx.plan

        def gradient(part: slice, values: torch.Tensor) -> torch.Tensor:
            """The gradient is onehot - p for ln p, -p (ln p + H) for the entropy H, and p for ln Σ exp."""
            at = plan.rows[part], plan.columns[part]
            of_log_p, of_entropy, of_log_sum = (one[at][:, None] for one in gradients)
            mask = plan.masks[plan.sets[part]]
            log_p = _finite(values - log_sum[at][:, None]).masked_fill_(~mask, 0)
            p = log_p.exp().masked_fill_(~mask, 0)
            found = p * (of_log_sum - of_log_p - of_entropy * (log_p + entropy[at][:, None]))
            return found.scatter_add_(1, plan.choice[part, None], of_log_p)

        return _backward(ctx, _Logits(states, weight, bias, plan, ctx.temperature, plan.union), gradient)


class LogSum(torch.autograd.Function):
    """ln Σ exp over the whole vocabulary, a few positions at a time, forwards and backwards."""

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        plan: Plan,
        temperature: float,
    ) -> torch.Tensor:
        with _plain(states):
            logits = _Logits(states, weight, bias, plan, temperature, None)
            found = torch.zeros(states.shape[:2], dtype=logits.sums, device=states.device)
            for part in logits.chunks():
                found[plan.rows[part], plan.columns[part]] = logits.of(part).logsumexp(1)
        ctx.save_for_backward(states, weight, bias, found)
        ctx.plan, ctx.temperature = plan, temperature
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        states, weight, bias, log_sum = ctx.saved_tensors
        plan: Plan = ctx.plan

        def of_logits(part: slice, values: torch.Tensor) -> torch.Tensor:
            at = plan.rows[part], plan.columns[part]
            return (values - log_sum[at][:, None]).exp_().mul_(gradient[at][:, None])

        return _backward(ctx, _Logits(states, weight, bias, plan, ctx.temperature, None), of_logits)


def _finite(log_p: torch.Tensor) -> torch.Tensor:
    """Log-probabilities for products with p. An earlier processor may have forbidden a legal token: its p of 0 times
    ln p is 0, not NaN."""
    return log_p.clamp_min(-1e30)


def _backward(
    ctx: Any, logits: _Logits, gradient: Callable[[slice, torch.Tensor], torch.Tensor]
) -> tuple[Any, ...]:
    """The gradients of the five inputs, from the gradients of the logits of each part."""
    _, weight, bias = ctx.saved_tensors[:3]
    with _plain(logits.states):
        sums = _Gradients(logits, ctx.needs_input_grad)
        for part in logits.chunks():
            sums.add(part, gradient(part, logits.of(part)))
        return *sums.whole(weight, bias), None, None


def _plain(states: torch.Tensor) -> torch.autocast:
    """Turns autocast off, so that types are used as they are written."""
    return torch.autocast(states.device.type, enabled=False)
