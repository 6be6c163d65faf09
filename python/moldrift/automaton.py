"""The automaton: it allows the legal texts of a molecule, in the tokens that the tokenizer itself would write, and
nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

import moldrift._lib as _lib
import moldrift.sources as sources
from moldrift.arguments import is_text, number, prefix_of, smiles_text, token_ids, truth, whole_number
from moldrift.errors import DriftError
from moldrift.sampling import Sampling

if TYPE_CHECKING:
    from moldrift.logits_processor import AutomatonLogitsProcessor

#: Offsets and ids of `Automaton.legal`.
LegalRows: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]"


#: The last tokens of a prompt, on which the first one of an answer depends.
PROMPT_TOKENS = 64

#: The end of prompts, unless an automaton is told another one.
SMILES_CLOSE = "[/SMILES]"


class Automaton:
    """The grammar of coordinates in tokens, for one tokenizer and one encoding. It makes the constraints that hold a
    model to the text of a molecule.

    Building it takes up to a second, a molecule takes milliseconds. Several threads may use it.

    >>> automaton = Automaton("qwen-like")
    >>> automaton.skeleton("CC=O")
    '[C]<>[C]<>=[O]<>'
    >>> start = automaton.allowed_ids("CC=O", [])
    >>> [automaton.token(one) for one in start]
    ['[CONFORMER]']

    Args:
        tokenizer: a ``tokenizer.json`` (also ``.gz``), a model folder, the name of a built-in tokenizer
            (``qwen-like``, ``llama-like``), a ``tokenizers.Tokenizer`` or a fast transformers tokenizer.
        dialect: how numbers are written: ``fixed`` (always four decimals) or ``stripped`` (without trailing
            zeros), also with other decimals, ``fixed-3``, or spaces, ``stripped-spaces``. Without ``dialect``
            and ``encoding``, the files that drift wrote beside the tokenizer or the model decide, else ``fixed``, with a
            warning for a model.
            The grammar of decimals has numbers below 100 Å. A model that would write a larger number must write
            another one.
        encoding: any encoding: ``fixed``, ``fixed-N``, ``stripped``, ``stripped-N``, ``lines``, ``lines-N``,
            ``integers:SCALE,DIGITS``, ``binned-v1:LOW,HIGH,STEP``, ``binned-v2:LOW,HIGH,STEP``, ``fsq:N``, the path of
            a file with bins or a ``drift.encoding/1``, or the content of such a file as a mapping. It takes
            precedence over ``dialect``.
        eos_token_id: the id that ends a text; of a list the first id is written. By default the model folder
            decides, then the tokenizer.
        conformers: the number of conformers in an answer, 1 to 1,000, one after another, each between its tags.
        opened: whether prompts already end in ``[CONFORMER]``.
        prompt_end: what prompts end in before ``[CONFORMER]``, if not in ``[/SMILES]``: the end of a chat template, such as
            ``<|im_start|>assistant\\n``. The first token of an answer may depend on it: behind ``[/SMILES]`` that of Llama
            and Qwen is ``][``.

    Raises:
        TokenizerRefused: if the automaton cannot be exact for this tokenizer; the message says why.
        DriftError: if the tokenizer cannot be read, or the dialect does not exist.
    """

    kind = "automaton"

    def __init__(
        self,
        tokenizer: Any,
        dialect: str | None = None,
        *,
        encoding: sources.EncodingLike | None = None,
        eos_token_id: int | list[int] | None = None,
        conformers: int = 1,
        opened: bool = False,
        prompt_end: str | None = None,
    ) -> None:
        if prompt_end is not None and not is_text(prompt_end):
            raise DriftError(f"prompt_end: {prompt_end!r:.60} is no text; give what prompts end in")
        self.prompt_end = prompt_end
        self.conformers = whole_number(
            "conformers", conformers, range(1, 1001), "are not in a text", "1 to 1,000"
        )
        self.opened = truth("opened", opened)
        self.source = sources.read(tokenizer, eos_token_id)
        if dialect is not None and encoding is not None:
            raise DriftError(f"encoding: stands beside dialect={dialect!r:.60}; give one of them")
        given = dialect if encoding is None else sources.encoding_name(encoding)
        if given is not None and not isinstance(given, str):
            raise DriftError(f"dialect: {given!r:.60} is no name; give fixed or stripped")
        self.dialect = given or self.source.encoding_or_fixed()
        self._processor = _lib.Processor(
            self.source.tokenizer,
            self.kind,
            self.dialect,
            self.source.eos,
            conformers=self.conformers,
            opened=self.opened,
            prompt_end=self.prompt_end,
            **self._strength(),
        )

    def _strength(self) -> dict[str, Any]:
        """Options of the processor beside those of every automaton."""
        return {}

    @property
    def eos_token_id(self) -> int:
        """The id that ends a text."""
        return self.source.eos

    @property
    def size(self) -> tuple[int, int]:
        """The number of states of the grammar of one coordinate, and of tokens that are legal anywhere in it."""
        return self._processor.size

    @property
    def ends_with_tag(self) -> bool:
        """Whether the tag that closes a conformer ends a text. With several conformers it then stands in the text, too."""
        return self.eos_token_id == self.source.tokenizer.id_of("[/CONFORMER]")

    def end_of(self, ids: Sequence[int]) -> int:
        """The number of ids of a completion up to its end of text, which is included; of all ids if the text has no end."""
        ends = [at for at, one in enumerate(ids) if one == self.eos_token_id]
        last = self.conformers if self.ends_with_tag else 1
        return ends[last - 1] + 1 if len(ends) >= last else len(ids)

    @property
    def _begun(self) -> str:
        """The part of an answer's first tag that prompts lack."""
        return "" if self.opened else "[CONFORMER]"

    def prompt_ids(self, prompt: str) -> list[int]:
        """The ids of a prompt before an answer, with the tokens that begin every text. They are those that the tokenizer
        gives for the prompt, unless a token crosses its end: Llama's ``][`` is the first token of the answer.

        >>> automaton = Automaton("qwen-like")
        >>> automaton.prompt_ids("[SMILES]C[/SMILES]") == automaton.source.tokenizer.ids("[SMILES]C[/SMILES]")
        True
        """
        return self.source.tokenizer.prompt_ids(prompt, self._begun)

    def prompt_ids_apart(self, prompt: str) -> list[int] | None:
        """The ids of a prompt before an answer, if they are not those of its text alone, because a token crosses its end."""
        return self.source.tokenizer.prompt_ids_apart(prompt, self._begun)

    def check_prompt(self, ids: Sequence[int], smiles: str | None = None) -> None:
        """Refuses the ids of a prompt, padded or not, behind which the answer would not be what a model was trained on.

        Args:
            ids: the ids.
            smiles: the molecule that texts are held to, if the prompt should ask for it.

        Raises:
            DriftError: if they end in the tag that opens a conformer and texts begin with it, or lack it and texts do not,
                if they have the beginning of the answer's first token, or end so that another token is the first, or if
                they ask for another molecule.
        """
        if smiles is not None:
            self.source.check_molecule(ids, smiles)
        tokenizer, ends = self.source.tokenizer, set(self.source.ends)
        known = [one for one in ids[-PROMPT_TOKENS:] if 0 <= one < tokenizer.size]
        last = next((at for at in range(len(known), 0, -1) if known[at - 1] not in ends), 0)
        text = tokenizer.answer_text(known[:last])
        if text.rstrip().endswith("[CONFORMER]") is not self.opened:
            raise DriftError(
                "prompt: does not end in [CONFORMER], which opened=True says; leave opened out, or add the tag"
                if self.opened
                else "prompt: ends in [CONFORMER], with which texts begin; give the automaton opened=True, or leave the tag out"
            )
        if self.prompt_ids_apart(text) is not None:
            raise DriftError(
                "prompt: a token of this tokenizer crosses its end, and would be written twice in part; give the model "
                "the ids of automaton.prompt_ids(prompt)"
            )
        end = SMILES_CLOSE if self.prompt_end is None else self.prompt_end
        if not tokenizer.begins_as_behind(f"{end}[CONFORMER]" if self.opened else end, text, self._begun):
            raise DriftError(
                f"prompt: behind {text[-40:]!r} an answer begins with other tokens than behind {end!r}; give the "
                "automaton prompt_end=, what prompts end in before [CONFORMER]"
            )

    def token(self, token_id: int) -> str:
        """The text of one token."""
        return self.source.tokenizer.answer_text(prefix_of([token_id], "the text"))

    def text(self, ids: Sequence[int]) -> str:
        """The text of an answer's ids, including special tokens."""
        return self.source.tokenizer.answer_text(prefix_of(ids, "the text"))

    def constraint(self, smiles: str) -> _lib.Constraint:
        """The constraint that allows the legal texts of one molecule.

        Args:
            smiles: the SMILES as in the prompt; its atoms, bonds and rings are copied in their order.

        Raises:
            InvalidSmiles: if ``smiles`` is not a SMILES.
        """
        return self._processor.constraint(smiles_text(smiles))

    def skeleton(self, smiles: str) -> str:
        """The text of a molecule with empty blocks, in the spelling of the training texts.

        Raises:
            InvalidSmiles: if ``smiles`` is not a SMILES.
        """
        return _lib.skeleton_of(smiles_text(smiles))

    def allowed_ids(self, smiles: str, prefix_ids: Sequence[int] = ()) -> list[int]:
        """The ids that may come next after the beginning of an answer, sorted. After the end of the answer only the
        end of text may.

        Args:
            smiles: the molecule.
            prefix_ids: all ids after the prompt.

        Raises:
            InvalidSmiles: if ``smiles`` is not a SMILES.
            ForbiddenToken: if the ids are not the beginning of a legal text.
        """
        return self.constraint(smiles).allowed(prefix_of(prefix_ids))[1]

    @overload
    def legal(self, smiles: str, ids: Sequence[int]) -> LegalRows: ...

    @overload
    def legal(self, smiles: Sequence[str], ids: Sequence[Sequence[int]]) -> list[LegalRows]: ...

    def legal(self, smiles: Any, ids: Any) -> Any:
        """The ids that were legal at each token of finished completions, for
        :func:`moldrift.torch.masked_log_probs`. They follow from the text, so a rollout need not record them.

        >>> automaton = Automaton("qwen-like")
        >>> ids = automaton.source.tokenizer.answer_ids("[CONFORMER][C]<0.5")
        >>> indptr, indices = automaton.legal("C", ids)
        >>> [len(ids), len(indptr), [automaton.token(one) for one in indices[indptr[4] : indptr[5]]]]
        [6, 7, ['.']]

        Args:
            smiles: the molecule, or a list with one molecule for each completion.
            ids: all tokens of the completion after the prompt (a list, array or tensor of integers), or a list of
                completions. A completion may be cut off, or empty. After its end of text only ends of text and
                padding may follow.

        Returns:
            ``indptr`` ``int64[tokens + 1]`` and ``indices`` ``int32``, as in sparse matrices (CSR): at token ``t``
            the ids ``indices[indptr[t] : indptr[t + 1]]`` were legal, sorted, including the end of text if it was
            legal. After the end nothing is listed. For lists, a list of such pairs. The interpreter's
            lock (GIL) is released meanwhile.

        Raises:
            InvalidSmiles: if one of ``smiles`` is not a SMILES.
            ForbiddenToken: if a token was not legal in its place: the answer is for another molecule, tokenizer or
                encoding, or is not tokenised as the tokenizer does it. The message names the token and its place.
            DriftError: if there is not one completion for each SMILES.
        """
        if isinstance(smiles, str):
            return self._processor.legal([smiles], [_completion(ids, 0)], list(self.source.ends))[0]
        smiles, ids = [smiles_text(one) for one in smiles], list(ids)
        if len(smiles) != len(ids):
            raise DriftError(
                f"legal: {len(smiles)} SMILES for {len(ids)} completions; give one SMILES for each completion"
            )
        completions = [_completion(one, number) for number, one in enumerate(ids)]
        return self._processor.legal(smiles, completions, list(self.source.ends))

    def grammar(self, smiles: str, format: str = "lark") -> str:
        """The automaton of one molecule as a grammar in token ids, for engines that follow grammars.

        Args:
            smiles: the molecule.
            format: ``lark`` (llguidance), ``ebnf`` (XGrammar), or ``json``, the tables.

        Raises:
            InvalidSmiles: if ``smiles`` is not a SMILES.
            DriftError: if the format does not exist.
        """
        return self.constraint(smiles).grammar(format)

    def tables(self, smiles: str) -> dict[str, Any]:
        """The automaton of one molecule as NumPy arrays, for a sampler of your own.

        Edges are stored in rows. Row ``r`` has the edges ``ids[offsets[r]:offsets[r + 1]]``, sorted, with the
        ``targets`` at the same places. A target is a row of the block or, from the block's number of rows on, a row
        of the segment. Targets below 0 are special: -1 and -2 lead into the next segment, at its ``roots[0]`` and
        ``roots[1]``; after -3 the text is over. A root is -3 if the last segment has no tokens: the text is then
        over after the block before it.

        Returns:
            ``{"eos": int, "block": {"offsets": uint32, "ids": uint32, "targets": int32, "exits": int32},
            "segments": [{"roots": int32[2], "offsets", "ids", "targets"}], "order": uint32}``.
            ``exits[state]`` is -1, or the root at which the next segment may begin before the next token.
            ``order`` lists the molecule's segments.

        Raises:
            InvalidSmiles: if ``smiles`` is not a SMILES.
        """
        return self.constraint(smiles).tables()

    def logits_processor(
        self, smiles: Sequence[str], *, sampling: Sampling | None = None, first_prompt: int = 0
    ) -> AutomatonLogitsProcessor:
        """A logits processor of transformers for one call of ``generate``.

        Args:
            smiles: one SMILES for each prompt, in the same order. Rows of ``num_return_sequences`` and beams belong
                to their prompt.
            sampling: lets the processor draw the tokens, with noise keyed by the text; then call ``generate`` with
                ``do_sample=False``.
            first_prompt: the number of the first molecule, which keys its noise.

        Raises:
            InvalidSmiles: if one of ``smiles`` is not a SMILES.
        """
        from moldrift.logits_processor import AutomatonLogitsProcessor

        return AutomatonLogitsProcessor(self, smiles, sampling=sampling, first_prompt=first_prompt)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source.tokenizer.name!r}, dialect={self.dialect!r})"


class GeometryAutomaton(Automaton):
    """The automaton, which also knows the geometry of a molecule: a coordinate is legal if the positions written before
    it leave the atom a place. It keeps bounds on distances, the senses of stereo marks, and planes
    (``docs/geometry.md``).

    It serves wherever an `Automaton` does, except for grammars and tables, which cannot express it. Where no coordinate
    is left, the atom is held to the signs of centres and double bonds alone, or else to the automaton: drift's own
    engine goes back in the text first, which a logits processor cannot. The legal tokens depend on all coordinates of
    a row, so a step takes up to a millisecond a row.

    >>> geometry = GeometryAutomaton("qwen-like", encoding="fixed-1")
    >>> ids = geometry.source.tokenizer.answer_ids("[CONFORMER][C]<0.0,0.0,0.0>[C]<0.0,0.0,")
    >>> [geometry.token(one) for one in geometry.allowed_ids("CC", ids)]
    ['1']

    Args:
        tokenizer, dialect, encoding, eos_token_id, conformers, opened, prompt_end: as for `Automaton`. The encoding must
            write x, y and z behind each atom.
        bounds: the share by which distances may exceed the judge's bounds, above 0 and at most 0.5.
        signs: whether stereocentres and double bonds get the sense of their marks.
        planes: whether flat groups stay flat.

    Raises:
        TokenizerRefused: as for `Automaton`.
        DriftError: if the encoding has no coordinates, or ``bounds`` is no such share. Its methods raise `InvalidSmiles` also
            for a SMILES that RDKit would refuse, because its bonds are not known.
    """

    kind = "geometry"

    def __init__(
        self,
        tokenizer: Any,
        dialect: str | None = None,
        *,
        bounds: float = 0.2,
        signs: bool = True,
        planes: bool = True,
        **options: Any,
    ) -> None:
        self.bounds = number("bounds", bounds, "0 or more")
        self.signs, self.planes = truth("signs", signs), truth("planes", planes)
        super().__init__(tokenizer, dialect, **options)

    def _strength(self) -> dict[str, Any]:
        return {"bounds": self.bounds, "signs": self.signs, "planes": self.planes}


def _completion(ids: Any, number: int) -> npt.NDArray[np.int64]:
    """The ids of one completion."""
    return token_ids(f"legal: completion {number}", ids)
