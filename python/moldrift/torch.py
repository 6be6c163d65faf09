"""Log-probabilities under a mask: the log-probability of each token among the tokens that were legal there.

Under a mask a token is drawn from the softmax over the legal tokens only. A trainer that takes the softmax over all
tokens gets the log-probabilities of another policy: the term -ln Z and its gradient are missing, where Z is the share of
the model's probability that the mask left, and forced tokens get gradients although there was no choice.
`masked_log_probs` gives the log-probabilities of the policy that wrote the text. The legal tokens follow from the text:
:meth:`moldrift.Automaton.legal`.

No tensor of size ``[batch, length, vocabulary]`` is made. Positions with one legal token are skipped. The others have
few different sets of legal tokens, and the union of the sets is small (about 20 to 1,200 ids). So one product with these
rows of the head serves all positions; the backward pass computes it again instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from moldrift.errors import DriftError, ForbiddenToken, TokenizerRefused
from moldrift.legal_softmax import LegalTerms, LogSum, Plan

__all__ = ["PolicyTerms", "masked_log_probs"]

#: Offsets ``[tokens + 1]`` and ids of one completion, as `moldrift.Automaton.legal` returns them.
Legal = tuple[npt.NDArray[Any], npt.NDArray[Any]]


class PolicyTerms(NamedTuple):
    """The result of `masked_log_probs` if entropy or ln Z is asked for. All tensors are ``[batch, length]``, in nats,
    and 0 after the end of each completion."""

    #: ln p of each token among the legal ones.
    log_probs: torch.Tensor
    #: The entropy of each choice among the legal tokens; 0 if there is no choice. None if not asked for.
    entropy: torch.Tensor | None
    #: ln Z, where Z is the share of the legal tokens in the full softmax. None if not asked for.
    log_z: torch.Tensor | None


def masked_log_probs(
    hidden_or_logits: torch.Tensor,
    ids: torch.Tensor,
    legal: Sequence[Legal],
    lm_head: Any = None,
    *,
    temperature: float = 1.0,
    entropy: bool = False,
    log_z: bool = False,
) -> torch.Tensor | PolicyTerms:
    """The log-probability of each token of completions under the constrained policy: the softmax over the tokens that
    were legal there. Differentiable (once) with respect to hidden states or logits, and to the head.

    A forced token, the only legal token in its place, has exactly 0 and no gradient, and needs no row of the head.
    Positions after the end of ``legal[i]`` have 0, too, and their ``ids`` are ignored: pad shorter completions with any
    ids.

    Products are computed in the wider type of hidden states and head, as in the model's own head, whether or not
    autocast is on. Softmax, logarithms and sums are in 32 bits, also for bf16 and f16 (64 bits for 64-bit input).

    >>> import moldrift, torch
    >>> automaton = moldrift.Automaton("qwen-like")
    >>> ids = automaton.source.tokenizer.answer_ids("[CONFORMER][C]<0.0000,-0.1250,3.0000>[/CONFORMER]")
    >>> hidden, head = torch.randn(1, len(ids), 8), torch.randn(1549, 8)
    >>> log_probs = masked_log_probs(hidden, torch.tensor([ids]), automaton.legal(["C"], [ids]), head)
    >>> log_probs.shape[1] == len(ids), float(log_probs[0, 0])
    (True, 0.0)

    Args:
        hidden_or_logits: ``[batch, length, dim]`` with ``lm_head``, else logits ``[batch, length, vocabulary]``. Position
            ``t`` predicts ``ids[:, t]``: give the model's last hidden states from the prompt's last token to the last
            token but one.
        ids: ``[batch, length]``, the tokens after the prompts.
        legal: the result of ``automaton.legal(list of SMILES, list of ids)`` for these completions, with or without
            padding.
        lm_head: the head's weight ``[vocabulary, dim]``, or a module with ``weight`` and perhaps ``bias``, without an
            adapter (LoRA).
        temperature: divides the logits, as in the rollout.
        entropy: whether to return the entropy of each choice, too.
        log_z: whether to return ln Z, too: the logarithm of the probability that the full softmax gives to the legal
            tokens, also for forced tokens. Added to the masked log-probability, it gives the log-probability under the
            full policy: ``full = masked + log_z``. It needs the whole head, for a few positions at a time.

    Returns:
        ``[batch, length]`` in 32 bits (64 for 64-bit input); :class:`PolicyTerms` if ``entropy`` or ``log_z`` is asked
        for.

    Raises:
        ForbiddenToken: if a token is not one of the tokens that were legal there.
        TokenizerRefused: if the head (or the logits) have no row for a legal token.
        DriftError: if shapes do not fit.
    """
    if not temperature > 0:
        raise DriftError(f"temperature: {temperature}; give that of the rollout, above 0")
    head = _Head.of(lm_head, hidden_or_logits)
    batch = _Batch(hidden_or_logits, ids, legal, head.vocabulary)
    choices = batch.plan(batch.counts > 1)
    log_probs, entropies, _ = batch.terms(choices, head, temperature)
    if not (entropy or log_z):
        return log_probs
    left = None
    if log_z:
        listed = batch.plan(batch.counts > 0)
        of_legal = batch.terms(listed, head, temperature)[2]
        left = of_legal - batch.log_sum(listed, head, temperature)
    return PolicyTerms(log_probs, entropies if entropy else None, left)


@dataclass(frozen=True)
class _Head:
    """The head that turns hidden states into logits. Without a weight the states are already logits."""

    weight: torch.Tensor | None
    bias: torch.Tensor | None
    vocabulary: int

    @classmethod
    def of(cls, lm_head: Any, states: torch.Tensor) -> _Head:
        if states.ndim != 3 or not states.is_floating_point():
            raise DriftError(
                f"hidden_or_logits: {_shape(states)}, {states.dtype}; give [batch, length, dim or vocabulary] in "
                "floating point"
            )
        if lm_head is None:
            return cls(None, None, states.shape[2])
        if _has_adapter(lm_head):
            raise DriftError(
                "lm_head: has an adapter, which its weight lacks; leave lm_head out of the adapter's target_modules, or "
                "train it whole (modules_to_save)"
            )
        weight, bias = getattr(lm_head, "weight", lm_head), getattr(lm_head, "bias", None)
        if not isinstance(weight, torch.Tensor) or weight.ndim != 2 or weight.shape[1] != states.shape[2]:
            found = _shape(weight) if isinstance(weight, torch.Tensor) else type(weight).__name__
            raise DriftError(
                f"lm_head: {found}, hidden states of {states.shape[2]}; give the weight "
                f"[vocabulary, {states.shape[2]}] of the model's own head"
            )
        return cls(weight, bias, weight.shape[0])


def _has_adapter(head: Any) -> bool:
    """Whether a module of peft adds to the product with its weight."""
    return (
        hasattr(head, "base_layer")
        and not getattr(head, "disable_adapters", False)
        and not getattr(head, "merged", False)
    )


class _Batch:
    """Completions and their legal tokens, checked."""

    def __init__(
        self, states: torch.Tensor, ids: torch.Tensor, legal: Sequence[Legal], vocabulary: int
    ) -> None:
        self.states = states
        shape = tuple(states.shape[:2])
        if tuple(ids.shape) != shape:
            raise DriftError(
                f"ids: {_shape(ids)} beside states of {list(shape)}; give one id for each row of states"
            )
        if isinstance(legal, tuple) and len(legal) == 2 and np.ndim(legal[0]) == 1:
            raise DriftError(
                "legal: is one pair; give a list, as automaton.legal makes of lists of SMILES and ids"
            )
        if len(legal) != shape[0]:
            raise DriftError(
                f"legal: of {len(legal)} completions, the batch has {shape[0]}; give one pair for each"
            )
        #: The number of legal ids at each position, 0 after the end of a completion.
        self.counts = np.zeros(shape, np.int64)
        self._legal = legal
        for row, (offsets, listed) in enumerate(legal):
            length = len(offsets) - 1
            if not 0 <= length <= shape[1]:
                raise DriftError(
                    f"legal: completion {row} has {length} tokens, its ids {shape[1]}; give ids that hold them"
                )
            self.counts[row, :length] = np.diff(offsets)
            if len(listed) and int(listed.max()) >= vocabulary:
                raise TokenizerRefused(
                    f"lm_head: has {vocabulary} rows, and token {int(listed.max())} is legal in completion {row}; "
                    "give the head of the model that the tokenizer belongs to"
                )
        self._ids = ids.detach().to("cpu", torch.int64).numpy()
        self._check_forced()

    def _check_forced(self) -> None:
        """Refuses a token that differs from the only legal token of its place."""
        for row, (offsets, listed) in enumerate(self._legal):
            forced = np.flatnonzero(np.diff(offsets) == 1)
            wrong = forced[listed[offsets[forced]] != self._ids[row, forced]]
            if len(wrong):
                raise _illegal(row, int(wrong[0]), self._ids)

    def plan(self, wanted: npt.NDArray[np.bool_]) -> Plan:
        """The plan for the wanted positions. Equal sets of legal ids are stored once."""
        rows, columns = np.nonzero(wanted)
        known: dict[bytes, int] = {}
        sets = np.empty(len(rows), np.int64)
        for at, (row, column) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
            offsets, listed = self._legal[row]
            key = listed[offsets[column] : offsets[column + 1]].astype(np.int64, copy=False).tobytes()
            sets[at] = known.setdefault(key, len(known))
        lists = [np.frombuffer(key, np.int64) for key in known]
        union = np.unique(np.concatenate(lists)) if lists else np.zeros(0, np.int64)
        masks = np.zeros((len(lists), len(union)), np.bool_)
        for number, one in enumerate(lists):
            masks[number, np.searchsorted(union, one)] = True
        tokens = self._ids[rows, columns]
        choice = np.searchsorted(union, tokens).clip(max=max(len(union) - 1, 0))
        wrong = np.flatnonzero((union[choice] != tokens) | ~masks[sets, choice]) if len(rows) else []
        if len(wrong):
            raise _illegal(int(rows[wrong[0]]), int(columns[wrong[0]]), self._ids)
        arrays = (rows, columns, sets, choice, union, masks)
        return Plan(*(torch.from_numpy(np.ascontiguousarray(one)).to(self.states.device) for one in arrays))

    def terms(
        self, plan: Plan, head: _Head, temperature: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """ln p, entropy, and ln Σ exp over the legal logits, each ``[batch, length]``, 0 at other positions."""
        return LegalTerms.apply(self.states, head.weight, head.bias, plan, temperature)

    def log_sum(self, plan: Plan, head: _Head, temperature: float) -> torch.Tensor:
        """ln Σ exp over the whole vocabulary, ``[batch, length]``, 0 at other positions."""
        return LogSum.apply(self.states, head.weight, head.bias, plan, temperature)


def _shape(tensor: torch.Tensor) -> list[int]:
    return list(tensor.shape)


def _illegal(row: int, column: int, ids: npt.NDArray[np.int64]) -> ForbiddenToken:
    return ForbiddenToken(
        f"completion {row}, token {column}: {ids[row, column]} is not among the ids that were legal there; "
        "give what automaton.legal made of these completions, in their order, and ids without the prompts"
    )
