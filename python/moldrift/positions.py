"""3DMolGen's position templates, under their names there, for comparisons.

The skeleton with a placeholder in every block is tokenised once. A token inside a block is free, under a mask; all
other tokens are forced. After the last token the end of text is forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import moldrift._lib as _lib
import moldrift.sources as sources
from moldrift.arguments import smiles_text
from moldrift.errors import DriftError
from moldrift.sampling import Sampling

if TYPE_CHECKING:
    from moldrift.logits_processor import PositionLogitsProcessor

#: The variants, with the placeholder that each uses in 3DMolGen.
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
        placeholder: three numbers; by default the placeholder that the variant uses in 3DMolGen.
        dialect: how numbers are written; it only matters for ``truncating``.
        eos_token_id: the id that ends a text.

    Raises:
        TokenizerRefused: if the tokenizer cannot be read.
        DriftError: if the kind does not exist, or the placeholder is not three numbers.
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
            InvalidSmiles: if ``smiles`` is not a SMILES.
            TokenizerRefused: if a token contains both a bracket and digits.
        """
        return self._processor.constraint(smiles_text(smiles))

    def check_prompt(self, ids: Sequence[int], smiles: str) -> None:
        """Refuses the ids of a prompt, padded or not, that asks for another molecule.

        Raises:
            DriftError: if it does.
        """
        self.source.check_molecule(ids, smiles)

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
