"""Rewards of whole completions: several conformers that a model wrote in one text.

A reward is any function of a `Completion`, which has the arrays of one text. `FBeta` is 3DMolGen's.

>>> from moldrift import Judge
>>> text = "[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,{}>"
>>> judge = Judge({"CCO": text.format("0.0000")}, conformers="all", within_texts=True)
>>> three = "".join(f"[CONFORMER]{text.format(z)}[/CONFORMER]" for z in ("0.0000", "0.0100", "3.0000"))
>>> (completion,) = judge.score("CCO", three).completions()
>>> completion.passed, unique(completion.within, completion.passed, 0.3)
(array([ True,  True,  True]), array([ True, False,  True]))
>>> float(completion.passed.mean() * (completion.nearest < 0.75).any())  # a reward of your own
1.0
>>> terms = FBeta(target=4).terms(completion)
>>> terms["valid"], terms["recall"], round(terms["unique"], 3), round(terms["reward"], 3)
(3, 1.0, 0.667, 0.409)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moldrift.arguments import numbers, whole_numbers
from moldrift.errors import DriftError
from moldrift.scores import Completion, Scores

__all__ = ["FBeta", "f_beta", "unique"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: What keeps the division of `f_beta` from dividing by 0, as in 3DMolGen.
_EPSILON = 1e-8


def unique(within: Floats, kept: Bools, bound: float) -> Bools:
    """Which of the kept conformers are no duplicates: in order, those whose RMSD to every earlier one that is no duplicate
    itself is at least ``bound``, in Å.

    Args:
        within: float [conformers, conformers], in Å.
        kept: bool [conformers], the conformers that count at all.
        bound: the RMSD below which two conformers are the same.

    >>> unique(np.array([[0.0, 0.2, 0.4], [0.2, 0.0, 0.2], [0.4, 0.2, 0.0]]), np.array([True, True, True]), 0.3)
    array([ True, False,  True])
    """
    found = np.zeros(len(kept), dtype=bool)
    for at in np.flatnonzero(kept):
        found[at] = not (within[at, found] < bound).any()
    return found


def f_beta(recall: float, precision: float, beta: float) -> float:
    """``(1 + β²) precision · recall / (β² precision + recall)``; 0 if both are 0. A β above 1 favours recall.

    >>> round(f_beta(0.4, 0.7, 1.5), 3)
    0.461
    """
    square = beta * beta
    return (1.0 + square) * precision * recall / (square * precision + recall + _EPSILON)


@dataclass(frozen=True)
class FBeta:
    """3DMolGen's reward of a completion (``grpo_reward_fbeta.py``), with its defaults::

        (F_β + bonus · soft precision) · (valid / target)^γ · unique / valid

    F_β is of the shares of references and of valid conformers that are closer than ``delta`` to one of the other.
    The soft precision is the mean over valid conformers of ``exp(-(d / sigma)²)``, where d is the RMSD to the nearest
    reference. The reward is 0 with fewer than ``least_valid`` valid conformers, and without references.

    Args:
        target: the number K of conformers that a completion should have; further ones do not count.
        delta: the RMSD below which a conformer covers a reference, in Å.
        beta: above 1 recall counts more, below 1 precision.
        gamma: the power of the share of finished conformers.
        duplicates: the RMSD below which a valid conformer is a duplicate of an earlier one, in Å.
        bonus: the weight of the soft precision (their ``fbeta_warmup_lambda``).
        sigma: its length in Å (their ``fbeta_warmup_sigma``).
        least_valid: the least number of valid conformers (the larger of their ``fbeta_min_valid_to_score`` and
            ``fbeta_drop_if_valid_lt``), by default 3, or ``target`` if that is less.
        use_unique: whether to multiply by the share of unique conformers.
        gate: which conformers are valid: an array of `Scores` by its name, or a function of a `Completion` that returns
            bool [conformers]. ``passed`` is their gate without PoseBusters, ``valid_geometry`` that with it.
    """

    target: int = 8
    delta: float = 0.75
    beta: float = 1.5
    gamma: float = 1.5
    duplicates: float = 0.3
    bonus: float = 0.1
    sigma: float = 0.75
    least_valid: int | None = None
    use_unique: bool = True
    gate: str | Callable[[Completion], Bools] = "passed"

    def __post_init__(self) -> None:
        (target,) = whole_numbers("target", self.target, "1 or more")
        if target < 1:
            raise DriftError(f"target: {self.target} conformers cannot be aimed at; give 1 or more")
        least = min(3, target) if self.least_valid is None else self.least_valid
        (least,) = whole_numbers("least_valid", least, "0 or more")
        if not 0 <= least <= target:
            raise DriftError(
                f"least_valid: {least} conformers cannot be valid of {target}; give 0 to {target}"
            )
        object.__setattr__(self, "least_valid", least)
        if not self.sigma > 0:
            raise DriftError(f"sigma: {self.sigma} is no length; give Å above 0")
        for name in ("delta", "beta", "gamma", "duplicates", "bonus", "sigma"):
            (value,) = numbers(name, getattr(self, name), "a number, 0 or more")
            if not 0 <= value < float("inf"):
                raise DriftError(f"{name}: {value} is no finite number of 0 or more; give one")

    def __call__(self, completion: Completion) -> float:
        return self.terms(completion)["reward"]

    def of_scores(self, scores: Scores) -> list[float]:
        """The rewards of all texts of a batch, in order."""
        return [self(completion) for completion in scores.completions()]

    def terms(self, completion: Completion) -> dict[str, float]:
        """The reward and what it is made of, for logs: ``conformers``, ``valid``, ``recall``, ``precision``, ``f_beta``,
        ``soft_precision``, ``finished`` (the share of the target, to its power), ``unique`` (a share), ``reward``."""
        kept = self._valid(completion)
        rmsd = completion.rmsd[kept]
        valid = len(rmsd)
        recall = precision = soft = 0.0
        if rmsd.size:
            nearest = rmsd.min(axis=1)
            recall = float((rmsd.min(axis=0) < self.delta).mean())
            precision = float((nearest < self.delta).mean())
            soft = float(np.exp(-((nearest / self.sigma) ** 2)).mean())
        alone = int(unique(completion.within, kept, self.duplicates).sum()) / valid if valid else 1.0
        finished = (valid / self.target) ** self.gamma if valid else 0.0
        score = f_beta(recall, precision, self.beta)
        reward = (score + self.bonus * soft) * finished * (alone if self.use_unique else 1.0)
        return {
            "conformers": len(completion),
            "valid": valid,
            "recall": recall,
            "precision": precision,
            "f_beta": score,
            "soft_precision": soft,
            "finished": finished,
            "unique": alone,
            "reward": reward if valid >= (self.least_valid or 0) else 0.0,
        }

    def _valid(self, completion: Completion) -> Bools:
        """The conformers that count: the first ``target``, if they pass the gate and can be compared."""
        mask = self.gate(completion) if callable(self.gate) else completion.of(self.gate)
        kept = np.array(mask, dtype=bool)
        if kept.shape != (len(completion),):
            raise DriftError(
                f"gate: shape {kept.shape}, not one value for each of {len(completion)} conformers"
            )
        kept[self.target :] = False
        # A conformer that can be compared has distance 0 from itself.
        return kept & ~np.isnan(np.diagonal(completion.within))
