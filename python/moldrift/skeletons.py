"""The automaton of a skeleton: texts that a user describes, for the data of prompts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import moldrift._lib as _lib
from moldrift.arguments import json_text, prefix_of
from moldrift.errors import DriftError
from moldrift.sampling import Sampling
from moldrift.sources import read

if TYPE_CHECKING:
    from moldrift.logits_processor import AutomatonLogitsProcessor

#: The name of a built-in skeleton, the path of its file, or the content of such a file.
SkeletonLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


class SkeletonAutomaton:
    """The texts of a skeleton in canonical tokens: those that the tokenizer itself writes.

    A skeleton (``docs/skeletons.md``) says what is fixed in a text, where numbers stand and what is repeated for the
    data of a prompt. The automaton allows nothing else: the composition is the prompt's, in its order or in any, and no
    number is off its format or range.

    >>> automaton = SkeletonAutomaton("qwen-like", "crystal-text")
    >>> salt = {"formula": "NaCl"}
    >>> ids = automaton.ids("4.0 4.0 5.6\\n90 90 90\\n")
    >>> [automaton.token(one) for one in automaton.allowed_ids(salt, ids)]
    ['Cl', 'Na']

    Args:
        tokenizer: as for :class:`moldrift.Automaton`. Its model is BPE, Unigram or a list of words.
        skeleton: the name of a built-in skeleton (``crystal-text``, ``simple-cif``, ``cif-p1``, ``xyz``,
            ``smiles-then-xyz``, ``enriched-smiles:fixed-2``, …), the path of a ``drift.skeleton/1``, or the content of
            such a file as a mapping.
        eos_token_id: the id that ends a text, as for :class:`moldrift.Automaton`.
        begun: the beginning of texts that prompts end with already: a marker (``<CIF>``), the first tag, or more. It must
            end where no token joins it with what follows.

    Raises:
        TokenizerRefused: if the tokens cannot be followed; the message says why.
        DriftError: if the skeleton cannot be read.
    """

    def __init__(
        self,
        tokenizer: Any,
        skeleton: SkeletonLike,
        *,
        eos_token_id: int | list[int] | None = None,
        begun: str = "",
    ) -> None:
        self.source = read(tokenizer, eos_token_id)
        is_content = isinstance(skeleton, Mapping)
        if not is_content and not isinstance(skeleton, str | os.PathLike):
            raise DriftError(f"skeleton: {skeleton!r} is none; give a name, a path or the content of a file")
        content = json_text("skeleton", dict(skeleton)) if is_content else os.fspath(skeleton)
        self._automaton = _lib.SkeletonAutomaton(self.source.tokenizer, content, self.source.eos, begun)

    @property
    def name(self) -> str:
        """The name of the skeleton."""
        return self._automaton.name

    @property
    def eos_token_id(self) -> int:
        """The id that ends a text."""
        return self.source.eos

    def token(self, token_id: int) -> str:
        """The text of one token."""
        return self.source.tokenizer.text(prefix_of([token_id], "the text"))

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, including special tokens."""
        return self.source.tokenizer.text(prefix_of(ids, "the text"))

    def ids(self, text: str) -> list[int]:
        """The ids of a text that is tokenized by itself, without special tokens around it."""
        return self.source.tokenizer.ids(text)

    def constraint(self, prompt: Mapping[str, Any]) -> _lib.Constraint:
        """The constraint that allows the texts of one prompt.

        Args:
            prompt: the data that the skeleton needs, as in a line of a file of prompts: ``{"formula": "NaCl"}``. Where
                prompt and answer are one text, ``prompt`` is its text.

        Raises:
            DriftError: if the prompt lacks what the skeleton needs.
            TokenizerRefused: if the tokens of its texts cannot be followed.
        """
        return self._automaton.constraint(*_record(prompt))

    def prompt_ids(self, prompt: Mapping[str, Any]) -> list[int]:
        """The ids of a prompt that a text follows, where the skeleton makes one text of both. A token may join them
        (``][``): it is the first one of the text, so these are not always the ids of the prompt alone.

        Raises:
            DriftError: if the prompt lacks what the skeleton needs.
            TokenizerRefused: if the tokens of its texts cannot be followed.
        """
        return self._automaton.prompt_ids(*_record(prompt))

    def allowed_ids(self, prompt: Mapping[str, Any], prefix_ids: Sequence[int] = ()) -> list[int]:
        """The ids that may come next after the beginning of an answer, sorted. Before the skeleton's marker these are
        nearly all ids of the tokenizer.

        Args:
            prompt: the data of the prompt.
            prefix_ids: all ids after the prompt.

        Raises:
            DriftError: if the prompt lacks what the skeleton needs.
            ForbiddenToken: if the ids are not the beginning of a text of the skeleton.
        """
        kind, ids = self.constraint(prompt).allowed(prefix_of(prefix_ids))
        if kind == "only":
            return ids
        forbidden = set(ids)
        return [one for one in range(self.source.tokenizer.size) if one not in forbidden]

    def grammar(self, prompt: Mapping[str, Any], format: str = "lark") -> str:
        """The texts of one prompt as a grammar in token ids, for engines that follow grammars.

        Args:
            prompt: the data of the prompt.
            format: ``lark`` (llguidance) or ``ebnf`` (XGrammar).

        Raises:
            DriftError: if a grammar cannot express the texts: with a marker, or with so many items in any order that
                their combinations cannot be listed.
        """
        return self.constraint(prompt).grammar(format)

    def logits_processor(
        self,
        prompts: Sequence[Mapping[str, Any]],
        *,
        sampling: Sampling | None = None,
        first_prompt: int = 0,
    ) -> AutomatonLogitsProcessor:
        """A logits processor of transformers for one call of ``generate``.

        Args:
            prompts: the data of each prompt, in the same order. Rows of ``num_return_sequences`` and beams belong to
                their prompt.
            sampling: lets the processor draw the tokens, as for :meth:`moldrift.Automaton.logits_processor`.
            first_prompt: the number of the first prompt, which keys its noise.

        Raises:
            DriftError: if a prompt lacks what the skeleton needs.
        """
        from moldrift.logits_processor import AutomatonLogitsProcessor

        return AutomatonLogitsProcessor(self, prompts, sampling=sampling, first_prompt=first_prompt)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source.tokenizer.name!r}, {self.name!r})"


def _record(prompt: Mapping[str, Any]) -> tuple[str, str | None]:
    """The data of a prompt as JSON, and its text if it has one.

    Raises:
        DriftError: if it is no record, or no JSON.
    """
    if not isinstance(prompt, Mapping):
        raise DriftError(
            f"prompt: {prompt!r} is no record; give the data of the skeleton, {{'formula': 'NaCl'}}"
        )
    text = prompt.get("prompt")
    return json_text("prompt", dict(prompt)), text if isinstance(text, str) else None
