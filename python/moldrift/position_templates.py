"""A drop-in for 3DMolGen's ``qwen_logit_processor`` with the same names and signatures, and a position template inside:
the allowlist 4.3.

It is for comparisons with :mod:`moldrift.qwen_logit_processor`, by changing one import. Atoms are spelled as in
3DMolGen's encoder, ``[O]``; 3DMolGen's own templates write ``[OH]``. ``placeholder=`` and ``kind=`` select other
templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from moldrift._lib import VERSION, skeleton_of
from moldrift.drop_in import DropInLogitsProcessor, PrecomputedTemplate, Sources, canonical, template
from moldrift.positions import PositionTemplates

__all__ = [
    "COORD_PLACEHOLDER",
    "PrecomputedTemplate",
    "QwenAllowlistLogitsProcessor",
    "build_precomputed_template",
    "build_reference_skeleton",
    "build_templates_for_batch",
    "clear_tokenizer_cache",
]

COORD_PLACEHOLDER = "0.000,0.000,0.000"


def _templates(
    tokenizer: Any, eos_token_id: int | list[int] | None, kind: str, placeholder: str
) -> PositionTemplates:
    return PositionTemplates(tokenizer, kind, placeholder=placeholder, eos_token_id=eos_token_id)


_SOURCES = Sources(_templates)


def build_reference_skeleton(smiles: str) -> str:
    """The text of a molecule with the placeholder in every block.

    Raises:
        ValueError: if ``smiles`` is not a SMILES.
    """
    return skeleton_of(canonical(smiles)).replace("<>", f"<{COORD_PLACEHOLDER}>")


def build_precomputed_template(
    smiles: str,
    tokenizer: Any,
    *,
    include_tags: bool = True,
    use_tokenizer_cache: bool = False,
    kind: str = "allowlist",
    placeholder: str = COORD_PLACEHOLDER,
) -> PrecomputedTemplate:
    """The template of one molecule.

    Args:
        smiles: the SMILES; converted to RDKit's canonical form if RDKit is installed.
        tokenizer: a fast transformers tokenizer; its sets of tokens are built once.
        include_tags: must be True.
        use_tokenizer_cache: ignored.
        kind: a variant of :class:`moldrift.PositionTemplates`.
        placeholder: three numbers.

    Raises:
        ValueError: if ``smiles`` is not a SMILES, or the tokenizer is refused.
    """
    return template(_SOURCES.of(tokenizer, None, kind, placeholder), smiles, include_tags)


def build_templates_for_batch(
    smiles_list: Sequence[str],
    tokenizer: Any,
    *,
    use_tokenizer_cache: bool = False,
    kind: str = "allowlist",
    placeholder: str = COORD_PLACEHOLDER,
) -> list[PrecomputedTemplate]:
    """The templates of several molecules, in their order."""
    return [
        build_precomputed_template(one, tokenizer, kind=kind, placeholder=placeholder) for one in smiles_list
    ]


def clear_tokenizer_cache() -> None:
    """Does nothing."""


class QwenAllowlistLogitsProcessor(DropInLogitsProcessor):
    """The position template under the name that 3DMolGen's scripts use, for one call of ``generate``."""

    VERSION = f"moldrift_{VERSION}_allowlist_4.3"
    CONFIG: ClassVar[dict[str, Any]] = {
        "approach": "position template",
        "coord_placeholder": COORD_PLACEHOLDER,
        "lookahead_range": 2,
    }
    SOURCES = _SOURCES
