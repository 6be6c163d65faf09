"""The users' position templates, under their names, to compare with.

The skeleton with a placeholder in every block is tokenised once. A token inside a block is free, under a
mask; any other is forced; behind the last the end of text is forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldrift import _lib, sources
from moldrift.errors import DriftError
from moldrift.sampling import Sampling

if TYPE_CHECKING:
    from moldrift.logits_processor import PositionLogitsProcessor

#: The variants, with the placeholder that each came with.
PLACEHOLDERS = {
    "generic": "0.0000,0.0000,0.0000",
    "qwen38": "0.0000,0.0000,0.0000",
    "qwen39": "0.000,0.000,0.000",
    "targeted": "0.000,0.000,0.000",
    "allowlist": "0.000,0.000,0.000",
    "truncating": "0.0000,0.0000,0.0000",
}


class PositionTemplates:
    """Position templates of one tokenizer.

    >>> templates = PositionTemplates("qwen-like", "allowlist")
    >>> kind, ids = templates.constraint("CO").allowed([])
    >>> kind, len(ids)
    ('only', 1)

    Args:
        tokenizer: as for :class:`moldrift.Automaton`.
        kind: ``generic`` (2.1), ``qwen38``, ``qwen39``, ``targeted`` (4.0), ``allowlist`` (4.3), or
            ``truncating``, which ends a block when its coordinate is complete.
        placeholder: three numbers; without it those that the variant came with.
        dialect: how numbers are written; only ``truncating`` knows the difference.
        eos_token_id: what ends a text.

    Raises:
        TokenizerRefused: if the tokenizer cannot be read.
        DriftError: if there is no such kind, or the placeholder is not three numbers.
    """

    def __init__(
        self,
        tokenizer: Any,
        kind: str = "allowlist",
        *,
        placeholder: str | None = None,
        dialect: str = "stripped",
        eos_token_id: int | list[int] | None = None,
    ) -> None:
        if kind not in PLACEHOLDERS:
            raise DriftError(f"kind: there is no {kind!r}; give one of {', '.join(PLACEHOLDERS)}")
        self.kind = kind
        self.source = sources.read(tokenizer, eos_token_id)
        self.placeholder = placeholder or PLACEHOLDERS[kind]
        self._processor = _lib.Processor(
            self.source.tokenizer, kind, dialect, self.source.eos, list(self.source.others), self.placeholder
        )

    @property
    def eos_token_id(self) -> int:
        """The id that ends a text."""
        return self.source.eos

    def constraint(self, smiles: str) -> _lib.Constraint:
        """The template of one molecule.

        Raises:
            InvalidSmiles: if it is none.
            TokenizerRefused: if a token holds both a bracket and digits.
        """
        return self._processor.constraint(smiles)

    def logits_processor(
        self, smiles: Sequence[str], *, sampling: Sampling | None = None, first_prompt: int = 0
    ) -> PositionLogitsProcessor:
        """A logits processor of transformers for one call of ``generate``, as
        :meth:`moldrift.Automaton.logits_processor`."""
        from moldrift.logits_processor import PositionLogitsProcessor

        return PositionLogitsProcessor(self, smiles, sampling=sampling, first_prompt=first_prompt)

    def __repr__(self) -> str:
        name = self.source.tokenizer.name
        return f"{type(self).__name__}({name!r}, {self.kind!r}, placeholder={self.placeholder!r})"
