"""A drop-in for 3DMolGen's ``qwen_logit_processor`` with the same names and signatures, and the automaton inside.

Instead of ``from molgen3D.evaluation.qwen_logit_processor import …`` write ``from
moldrift.qwen_logit_processor import …``. The environment variable ``MOLDRIFT_ENCODING`` or ``MOLDRIFT_DIALECT`` says
how numbers are written, by default ``fixed``. ``dialect=`` overrides both.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from moldrift._lib import VERSION, skeleton_of
from moldrift.automaton import Automaton
from moldrift.drop_in import DropInLogitsProcessor, PrecomputedTemplate, Sources, canonical, template

__all__ = [
    "PrecomputedTemplate",
    "QwenAllowlistLogitsProcessor",
    "build_precomputed_template",
    "build_reference_skeleton",
    "build_templates_for_batch",
    "clear_tokenizer_cache",
]


def _automaton(tokenizer: Any, eos_token_id: int | list[int] | None, dialect: str) -> Automaton:
    return Automaton(tokenizer, dialect, eos_token_id=eos_token_id)


_SOURCES = Sources(_automaton)


def build_reference_skeleton(smiles: str) -> str:
    """The text of a molecule with empty blocks.

    Raises:
        ValueError: if ``smiles`` is not a SMILES.
    """
    return skeleton_of(canonical(smiles))


def build_precomputed_template(
    smiles: str,
    tokenizer: Any,
    *,
    include_tags: bool = True,
    use_tokenizer_cache: bool = False,
    dialect: str | None = None,
) -> PrecomputedTemplate:
    """The template of one molecule, with its constraint.

    Args:
        smiles: the SMILES; converted to RDKit's canonical form if RDKit is installed.
        tokenizer: a fast transformers tokenizer; its automaton is built once.
        include_tags: must be True.
        use_tokenizer_cache: ignored; the automaton caches the texts that it has seen.
        dialect: how numbers are written.

    Raises:
        ValueError: if ``smiles`` is not a SMILES, or the tokenizer is refused.
    """
    dialect = dialect or os.environ.get("MOLDRIFT_ENCODING") or os.environ.get("MOLDRIFT_DIALECT", "fixed")
    return template(_SOURCES.of(tokenizer, None, dialect), smiles, include_tags)


def build_templates_for_batch(
    smiles_list: Sequence[str],
    tokenizer: Any,
    *,
    use_tokenizer_cache: bool = False,
    dialect: str | None = None,
) -> list[PrecomputedTemplate]:
    """The templates of several molecules, in their order."""
    return [build_precomputed_template(smiles, tokenizer, dialect=dialect) for smiles in smiles_list]


def clear_tokenizer_cache() -> None:
    """Does nothing: the automaton keeps the texts between blocks."""


class QwenAllowlistLogitsProcessor(DropInLogitsProcessor):
    """The automaton under the name that 3DMolGen's scripts use, for one call of ``generate``."""

    VERSION = f"moldrift_{VERSION}_automaton"
    CONFIG: ClassVar[dict[str, Any]] = {
        "approach": "automaton",
        "description": "Legal texts in canonical tokens and nothing else",
    }
    SOURCES = _SOURCES
