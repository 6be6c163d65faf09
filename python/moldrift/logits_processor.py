"""Logits processors for transformers. Legal logits are gathered, and written into scores that are -inf elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import torch

import moldrift._lib as _lib
from moldrift.arguments import is_list_of_prompts, whole_number
from moldrift.errors import DriftError, ForbiddenToken
from moldrift.sampling import Sampling
from moldrift.sources import TokenizerSource

try:
    from transformers import LogitsProcessor
except ImportError:  # without transformers the class works with any caller of the same signature
    LogitsProcessor = object


#: What a constraint is for: a SMILES, or the data of a prompt.
Subject = TypeVar("Subject", contravariant=True)


class ConstraintSource(Protocol[Subject]):
    """The source of constraints: an automaton or position templates."""

    source: TokenizerSource

    def constraint(self, subject: Subject, /) -> _lib.Constraint:
        """The constraint of one molecule or prompt."""


#: The source of constraints of molecules.
MoleculeSource: TypeAlias = ConstraintSource[str]


class ConstraintLogitsProcessor(LogitsProcessor):
    """Holds every row of one call of ``generate`` to the text of its molecule or prompt.

    Rows may be left-padded, may belong to ``num_return_sequences`` or beams, and may continue after their end. The
    model's vocabulary may be larger than the tokenizer's. Scores are not changed, but copied: ``generate`` returns them as
    the model's logits (``output_logits=True``). Give it as the last processor. Beam sampling (``num_beams`` with
    ``do_sample``) ends in a `ForbiddenToken` error, because transformers then keeps beams of probability 0, which contain
    forbidden tokens.

    Attributes:
        forward_passes: the number of passes of the model so far.
    """

    def __init__(
        self,
        molecules: ConstraintSource[Subject],
        smiles: Sequence[Subject],
        *,
        sampling: Sampling | None = None,
        first_prompt: int = 0,
    ) -> None:
        if not is_list_of_prompts(smiles):
            raise DriftError(
                f"logits processor: {smiles!r} is no list; give a list with one SMILES or record for each prompt"
            )
        if sampling is not None and not isinstance(sampling, Sampling):
            raise DriftError(
                f"sampling: {sampling!r} is none; give a moldrift.Sampling, such as Sampling.preset('qwen3')"
            )
        constraints = [molecules.constraint(one) for one in smiles]
        self._set_up(molecules.source, constraints, sampling, first_prompt)
        # Prompts of other texts than molecules may be anything.
        self._check_prompt = getattr(molecules, "check_prompt", None)
        self._subjects = smiles

    def _set_up(
        self,
        source: TokenizerSource,
        constraints: list[_lib.Constraint],
        sampling: Sampling | None = None,
        first_prompt: int = 0,
    ) -> None:
        self.source = source
        self.sampling = sampling
        first = whole_number(
            "first_prompt", first_prompt, range(2**63), "is no number of a prompt", "0 or more"
        )
        prompts = list(range(first, first + len(constraints)))
        sampler = sampling.sampler() if sampling is not None else None
        self.rows = _lib.Rows(constraints, prompts, list(source.ends), sampler)
        self.forward_passes = 0
        self._prompts: torch.Tensor | None = None
        self._check_prompt: Callable[[list[int], Any], None] | None = None
        self._subjects: Sequence[Any] = ()

    def begin(self, input_ids: torch.Tensor) -> None:
        """Takes the prompts, ``[rows, length]``, as the first call does.

        Raises:
            ValueError: if the rows cannot be divided equally among the molecules, or rows of one molecule have different
                prompts.
            DriftError: if the processor was used before, the prompts are longer than the context, or an automaton refuses
                one (`moldrift.Automaton.check_prompt`), or one asks for another molecule.
        """
        if self._prompts is not None:
            raise DriftError(USED_TWICE)
        rows, length = input_ids.shape
        each = self.rows.begin(rows)
        prompts = input_ids.reshape(rows // each, each, length)
        if each > 1 and not bool((prompts == prompts[:, :1]).all()):
            raise ValueError(
                f"logits processor: {rows // each} molecules, but {rows} rows with different prompts; "
                "give it one SMILES for each prompt"
            )
        context = self.source.context
        if context is not None and length >= context:
            raise DriftError(
                f"prompt: takes {length} tokens, the model's context {context}; "
                "leave the longest molecules out"
            )
        if self._check_prompt is not None:
            for prompt, subject in zip(input_ids[::each].tolist(), self._subjects, strict=True):
                self._check_prompt(prompt, subject)
        self._prompts = input_ids.detach().to("cpu", copy=True)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores, with -inf for all forbidden tokens.

        Args:
            input_ids: ``[rows, length]``, the prompts and the texts so far.
            scores: ``[rows, vocabulary of the model]``.

        Raises:
            ForbiddenToken: if a row contains a token that its mask had forbidden.
            DriftError: if the processor is used for a second call of ``generate``, or a legal token's score is no number.
        """
        self._follow(input_ids)
        self.forward_passes += 1
        if self.rows.wants_argmax:
            self.rows.observe(scores.argmax(dim=-1).cpu().numpy())
        return self.masked(scores)

    def _follow(self, input_ids: torch.Tensor) -> None:
        """Advances the rows by the tokens that were written."""
        if self._prompts is None:
            self.begin(input_ids)
            return
        length = self._prompts.shape[1]
        if input_ids.shape[1] <= length:
            raise DriftError(USED_TWICE)
        written = input_ids[:, length:].to("cpu", torch.int64)
        try:
            self.rows.step(written.numpy())
        except ForbiddenToken as error:
            if not torch.equal(input_ids[:, :length].cpu(), self._prompts):
                raise DriftError(USED_TWICE) from error
            raise

    def masked(self, scores: torch.Tensor) -> torch.Tensor:
        """The scores, with -inf for all but the legal ones; with ``sampling``, 0 for the drawn token and -inf for all
        others."""
        vocabulary = scores.shape[1]
        kept_at, listing, blocked = self.rows.places(vocabulary)
        places = torch.from_numpy(kept_at).to(scores.device)
        kept = scores.reshape(-1).index_select(0, places)
        if bool(kept.isnan().any()):
            raise DriftError(NO_NUMBERS)
        # Earlier processors may have forbidden all legal tokens. A row without a finite score would break sampling.
        kept.clamp_(min=torch.finfo(scores.dtype).min / 16)
        if self.sampling is None and listing is not None:
            # Before a marker rows keep all tokens of the tokenizer.
            masked = scores.clone(memory_format=torch.contiguous_format)
            if len(blocked):
                masked.view(-1).index_fill_(0, torch.from_numpy(blocked).to(scores.device), float("-inf"))
            if len(listing):
                masked.index_fill_(0, torch.from_numpy(listing).to(scores.device), float("-inf"))
        else:
            masked = torch.full_like(scores, float("-inf"), memory_format=torch.contiguous_format)
        if self.sampling is not None:
            drawn = self._draw(kept, scores, listing)
            return masked.scatter_(1, drawn[:, None].to(scores.device), 0.0)
        masked.view(-1).index_copy_(0, places, kept)
        return masked

    def _draw(self, kept: torch.Tensor, scores: torch.Tensor, listing: np.ndarray | None) -> torch.Tensor:
        """Draws a token for each row, ``[rows]``."""
        full = None
        if listing is not None:
            others = np.setdiff1d(np.arange(scores.shape[0]), listing)
            full = scores[torch.from_numpy(others).to(scores.device)].float().cpu().numpy()
        return torch.from_numpy(self.rows.draws(scores.shape[1], kept.float().cpu().numpy(), full))


class AutomatonLogitsProcessor(ConstraintLogitsProcessor):
    """Allows legal texts in canonical tokens and nothing else. Made by
    :meth:`moldrift.Automaton.logits_processor`."""


class PositionLogitsProcessor(ConstraintLogitsProcessor):
    """A position template of 3DMolGen. Made by :meth:`moldrift.PositionTemplates.logits_processor`."""


NO_NUMBERS = "logits processor: scores of the model are no numbers (NaN); its checkpoint is broken, or 16-bit floats overflow"

USED_TWICE = (
    "logits processor: it was used before; make a new one for each call of generate, "
    "with automaton.logits_processor(smiles)"
)
