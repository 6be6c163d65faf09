"""The common part of the drop-in modules: templates that contain a molecule's constraint, and a processor for them.

:mod:`moldrift.qwen_logit_processor` and :mod:`moldrift.position_templates` have the names and signatures of
3DMolGen's ``qwen_logit_processor``, so its scripts only need one changed import.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import moldrift._lib as _lib
from moldrift.errors import InvalidSmiles
from moldrift.logits_processor import ConstraintLogitsProcessor, MoleculeSource

#: Makes the automaton or the position templates for a tokenizer and an end of text.
Maker = Callable[[Any, "int | list[int] | None"], MoleculeSource]


@dataclass(frozen=True)
class PrecomputedTemplate:
    """The constraint on one molecule's text, with its source.

    Attributes:
        smiles: the canonical SMILES that the text spells.
        molecules: the automaton or the position templates that made the constraint.
        constraint: the constraint of the molecule.
    """

    smiles: str
    molecules: MoleculeSource
    constraint: _lib.Constraint


class Sources:
    """Automata or position templates, one for each tokenizer and end of text. Several threads may use it."""

    def __init__(self, make: Maker) -> None:
        self._make = make
        self._known: dict[tuple[Any, ...], MoleculeSource] = {}
        self._kept: list[Any] = []
        self._lock = threading.Lock()

    def of(
        self, tokenizer: Any, eos_token_id: int | list[int] | None = None, *options: Any
    ) -> MoleculeSource:
        """The automaton or templates of a tokenizer, made on first use."""
        eos = tuple(eos_token_id) if isinstance(eos_token_id, (list, tuple)) else eos_token_id
        # An object's end of text may be changed later.
        key = (id(tokenizer), _size(tokenizer), eos, getattr(tokenizer, "eos_token_id", None), *options)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._make(tokenizer, eos_token_id, *options)
                self._forget_with(tokenizer, key)
            return self._known[key]

    def _forget_with(self, tokenizer: Any, key: tuple[Any, ...]) -> None:
        """Removes the entry when the tokenizer is deleted, since another one may then get the same ``id()``."""
        try:
            weakref.finalize(tokenizer, self._known.pop, key, None)
        except TypeError:  # an object without weak references is kept alive
            self._kept.append(tokenizer)


def _size(tokenizer: Any) -> int | str:
    """A key that changes when tokens are added: the number of tokens; for a path the path itself."""
    return (
        len(tokenizer) if hasattr(tokenizer, "__len__") and not isinstance(tokenizer, str) else str(tokenizer)
    )


def canonical(smiles: str) -> str:
    """RDKit's canonical SMILES without hydrogens if RDKit is installed, else the text as it is.

    Raises:
        InvalidSmiles: if RDKit cannot read the SMILES.
    """
    try:
        from rdkit import Chem
    except ImportError:
        return smiles
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise InvalidSmiles(f"`{smiles[:40]}`: is no SMILES that RDKit reads; give one")
    return Chem.MolToSmiles(Chem.RemoveHs(molecule))


def template(molecules: MoleculeSource, smiles: str, include_tags: bool) -> PrecomputedTemplate:
    """The template of one molecule.

    Raises:
        InvalidSmiles: if ``smiles`` is not a SMILES.
        ValueError: if ``include_tags`` is False, since answers of these models have tags.
    """
    if not include_tags:
        raise ValueError("include_tags: answers stand between [CONFORMER] and [/CONFORMER]; leave it True")
    smiles = canonical(smiles)
    return PrecomputedTemplate(smiles, molecules, molecules.constraint(smiles))


class DropInLogitsProcessor(ConstraintLogitsProcessor):
    """A processor for templates; the base class of both drop-ins."""

    #: The automata or templates, shared with the functions of the module.
    SOURCES: Sources

    def __init__(
        self,
        templates: Sequence[PrecomputedTemplate],
        prompt_lengths: Sequence[int],
        *,
        tokenizer: Any,
        eos_token_id: int | list[int] | None = None,
    ) -> None:
        """Takes one template for each prompt. The first call shows where the prompts end, so the values of
        ``prompt_lengths`` are ignored; only their number is checked.

        Raises:
            ValueError: if the numbers of templates and prompts differ.
        """
        if len(templates) != len(prompt_lengths):
            raise ValueError(
                f"logits processor: {len(templates)} templates for {len(prompt_lengths)} prompts; "
                "give one for each"
            )
        ends = eos_token_id if isinstance(eos_token_id, (list, tuple)) else [eos_token_id]
        constraints = []
        source = templates[0].molecules.source if templates else None
        for one in templates:
            if eos_token_id is not None and one.molecules.source.eos != ends[0]:
                one = self._with_end(one, tokenizer, eos_token_id)
            source = one.molecules.source
            constraints.append(one.constraint)
        self._set_up(source, constraints)
        if source is not None:
            self._check_prompt, self._subjects = source.check_molecule, [one.smiles for one in templates]

    def _with_end(self, one: PrecomputedTemplate, tokenizer: Any, eos_token_id: Any) -> PrecomputedTemplate:
        """The template with another end of text."""
        molecules = self.SOURCES.of(tokenizer, eos_token_id, *_options(one.molecules))
        return PrecomputedTemplate(one.smiles, molecules, molecules.constraint(one.smiles))


def _options(molecules: Any) -> tuple[Any, ...]:
    """The options that a source was made with, besides tokenizer and end of text."""
    placeholder = getattr(molecules, "placeholder", None)
    return (molecules.dialect,) if placeholder is None else (molecules.kind, placeholder)
