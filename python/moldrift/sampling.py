"""Sampling with noise that is keyed by the text, so that a text does not depend on its batch."""

from __future__ import annotations

from dataclasses import dataclass

import moldrift._lib as _lib
from moldrift.arguments import number, whole_number


@dataclass(frozen=True)
class Sampling:
    """Temperature, top-k, top-p and min-p, applied in this order to the legal logits, and a seed.

    Each token has its own Gumbel noise, keyed by seed, prompt, generation, position and token. The token with the
    largest sum of logit and noise is a draw from the softmax. A seed draws the same tokens in any batch, and the same
    as ``drift eval``. With a `moldrift.GeometryAutomaton` top-k, top-p and min-p cut the tokens that the geometry leaves;
    ``drift eval --lp geometry`` cuts those of the automaton, and draws again where the geometry excludes the token.

    >>> Sampling.preset("qwen3", seed=1)
    Sampling(temperature=0.7, top_k=20, top_p=0.8, min_p=None, seed=1)

    Attributes:
        temperature: divides the logits; None always takes the most likely token.
        top_k: keeps this number of most likely tokens; 0 or None keeps all.
        top_p: keeps the most likely tokens until they have this share of the probability.
        min_p: keeps tokens with at least this share of the most likely token's probability.
        seed: the seed of all draws.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("top_k", self.top_k), ("seed", self.seed)):
            if value is not None:
                count = whole_number(name, value, range(2**64), "is not from 0 to 2^64 - 1", "0 or more")
                object.__setattr__(self, name, count)
        for name, setting in (
            ("temperature", self.temperature),
            ("top_p", self.top_p),
            ("min_p", self.min_p),
        ):
            if setting is not None:
                object.__setattr__(self, name, number(name, setting, "a number, or None"))

    @classmethod
    def preset(cls, name: str, seed: int = 0) -> Sampling:
        """A preset by name: ``greedy``, ``qwen3``, ``top-p-P-tT`` or ``min-p-P-tT``, for example ``top-p-0.8-t1.2``.

        Raises:
            DriftError: if the preset does not exist.
        """
        return cls(*_lib.Sampler.preset(name), seed)

    def sampler(self) -> _lib.Sampler:
        """The sampler that draws tokens.

        Raises:
            DriftError: if a value is invalid.
        """
        return _lib.Sampler(self.temperature, self.top_k, self.top_p, self.min_p, self.seed)
