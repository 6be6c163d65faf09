"""How tokens are drawn with noise that is keyed by the text, so that a text does not depend on its batch."""

from __future__ import annotations

from dataclasses import dataclass

from moldrift import _lib


@dataclass(frozen=True)
class Sampling:
    """Temperature, top-k, top-p and min-p, applied in this order to the legal logits, and a seed.

    Each token has Gumbel noise of its own, keyed by seed, prompt, generation, position and token: the
    largest sum of logit and noise is a draw from the softmax. The same seed draws the same tokens in any
    batch, and the same as ``drift eval``.

    >>> Sampling.preset("qwen3", seed=1)
    Sampling(temperature=0.7, top_k=20, top_p=0.8, min_p=None, seed=1)

    Attributes:
        temperature: divides the logits; None: always the most likely token.
        top_k: keeps so many of the most likely tokens; 0 keeps all, as without it.
        top_p: keeps the most likely tokens until they have this share.
        min_p: keeps tokens with at least this share of the most likely one's probability.
        seed: of all draws.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    seed: int = 0

    @classmethod
    def preset(cls, name: str, seed: int = 0) -> Sampling:
        """``greedy``, ``qwen3``, ``top-p-P-tT`` or ``min-p-P-tT``, for example ``top-p-0.8-t1.2``.

        Raises:
            DriftError: if there is no such preset.
        """
        return cls(*_lib.Sampler.preset(name), seed)

    def sampler(self) -> _lib.Sampler:
        """What draws.

        Raises:
            DriftError: if a value makes no sense.
        """
        return _lib.Sampler(self.temperature, self.top_k, self.top_p, self.min_p, self.seed)
