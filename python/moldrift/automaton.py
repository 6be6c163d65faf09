"""The automaton: legal texts of a molecule in the tokens that the tokenizer itself would write, and nothing
else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from moldrift import _lib, sources
from moldrift.errors import DriftError
from moldrift.sampling import Sampling

if TYPE_CHECKING:
    from moldrift.logits_processor import AutomatonLogitsProcessor

#: Offsets and ids of `Automaton.legal`.
LegalRows: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]"


class Automaton:
    """The grammar of coordinates in tokens, for one tokenizer and dialect; makes what holds a model to a
    molecule's text.

    Building it takes up to a second; molecules take milliseconds. It may be used from several threads.

    >>> automaton = Automaton("qwen-like")
    >>> automaton.skeleton("CC=O")
    '[C]<>[C]<>=[O]<>'
    >>> start = automaton.allowed_ids("CC=O", [])
    >>> [automaton.token(one) for one in start]
    ['[CONFORMER]']

    Args:
        tokenizer: a ``tokenizer.json`` (also ``.gz``), a model folder, the name of a tokenizer that comes
            with drift (``qwen-like``, ``llama-like``), a ``tokenizers.Tokenizer`` or a fast transformers
            tokenizer.
        dialect: how numbers are written: ``fixed`` (always four decimals), ``stripped`` (trailing zeros
            removed), also with other decimals, ``fixed-3``, or spaces, ``stripped-spaces``. Without it and
            ``encoding`` the files say so that drift wrote beside the tokenizer or the model; else ``fixed``.
            Of decimals the grammar holds numbers below 100 Å: a model that wants to write a larger one is
            held to another number.
        encoding: the same for any encoding: ``binned-v1:LOW,HIGH,STEP``, ``binned-v2:LOW,HIGH,STEP``,
            ``fsq:N``, the path of a file of bins or of ``drift.encoding/1``, or what such a file holds, as a
            mapping. It goes before ``dialect``.
        eos_token_id: what ends a text; of a list the first is written. Without it the model's folder says,
            then the tokenizer.
        conformers: how many an answer holds, one after another, each between its tags.
        opened: whether prompts end in ``[CONFORMER]`` already.

    Raises:
        TokenizerRefused: if the automaton cannot be exact for this tokenizer; the message says why.
        DriftError: if the tokenizer cannot be read, or there is no such dialect.
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
    ) -> None:
        if conformers < 1:
            raise ValueError(f"conformers: {conformers}; give 1 or more")
        self.source = sources.read(tokenizer, eos_token_id)
        given = dialect if encoding is None else sources.encoding_name(encoding)
        self.dialect = given or self.source.encoding or "fixed"
        self._processor = _lib.Processor(
            self.source.tokenizer,
            self.kind,
            self.dialect,
            self.source.eos,
            conformers=conformers,
            opened=opened,
        )

    @property
    def eos_token_id(self) -> int:
        """The id that ends a text."""
        return self.source.eos

    @property
    def size(self) -> tuple[int, int]:
        """States of the grammar of one coordinate, and how many tokens are legal somewhere in it."""
        return self._processor.size

    def token(self, token_id: int) -> str:
        """The text of one token."""
        return self.source.tokenizer.answer_text([token_id])

    def text(self, ids: Sequence[int]) -> str:
        """The text of an answer's ids, special tokens kept."""
        return self.source.tokenizer.answer_text(list(ids))

    def constraint(self, smiles: str) -> _lib.Constraint:
        """What the text of one molecule may be.

        Args:
            smiles: as it stands in the prompt; its atoms, bonds and rings are copied in their order.

        Raises:
            InvalidSmiles: if it is none.
        """
        return self._processor.constraint(smiles)

    def skeleton(self, smiles: str) -> str:
        """The text of a molecule with empty blocks, as it was spelled in training.

        Raises:
            InvalidSmiles: if it is no SMILES.
        """
        return _lib.skeleton_of(smiles)

    def allowed_ids(self, smiles: str, prefix_ids: Sequence[int] = ()) -> list[int]:
        """The ids that may follow an answer that has come so far, sorted. Behind the end it is the end of
        text.

        Args:
            smiles: the molecule.
            prefix_ids: all ids behind the prompt.

        Raises:
            InvalidSmiles: if it is no SMILES.
            ForbiddenToken: if the prefix is none of a legal text.
        """
        return self.constraint(smiles).allowed(list(prefix_ids))[1]

    @overload
    def legal(self, smiles: str, ids: Sequence[int]) -> LegalRows: ...

    @overload
    def legal(self, smiles: Sequence[str], ids: Sequence[Sequence[int]]) -> list[LegalRows]: ...

    def legal(self, smiles: Any, ids: Any) -> Any:
        """What was legal at every token of completions that are written already: for
        :func:`moldrift.torch.masked_log_probs`. It follows from the text, so a rollout need not record it.

        >>> automaton = Automaton("qwen-like")
        >>> ids = automaton.source.tokenizer.answer_ids("[CONFORMER][C]<0.5")
        >>> indptr, indices = automaton.legal("C", ids)
        >>> [len(ids), len(indptr), [automaton.token(one) for one in indices[indptr[4] : indptr[5]]]]
        [6, 7, ['.']]

        Args:
            smiles: of the molecule; or a list with one for each completion.
            ids: of the completion, all tokens behind the prompt (any integers in a row: list, array or tensor);
                or a list of completions. A completion may be cut off, or empty. Behind its end of text
                only ends of text and padding may stand.

        Returns:
            ``indptr`` ``int64[tokens + 1]`` and ``indices`` ``int32``, as in sparse matrices (CSR): before token
            ``t`` the ids ``indices[indptr[t] : indptr[t + 1]]``, sorted, were legal, the end of text
            among them where it was; behind the end each token lists itself. Of lists a list of such
            pairs. The interpreter's lock is released meanwhile.

        Raises:
            InvalidSmiles: if one is no SMILES.
            ForbiddenToken: if a token was not legal where it stands: of an answer to another molecule, of another
                tokenizer or encoding, or not as the tokenizer writes it. The message says where and which.
            DriftError: if there is not one completion for each SMILES.
        """
        if isinstance(smiles, str):
            return self._processor.legal([smiles], [_completion(ids, 0)], list(self.source.ends))[0]
        smiles, ids = list(smiles), list(ids)
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
            InvalidSmiles: if it is no SMILES.
            DriftError: if there is no such format.
        """
        return self.constraint(smiles).grammar(format)

    def tables(self, smiles: str) -> dict[str, Any]:
        """The automaton of one molecule as NumPy arrays, for samplers of one's own.

        Edges stand in rows: those of row ``r`` are ``ids[offsets[r]:offsets[r + 1]]``, sorted, with
        ``targets``. A place is a row of the block, or, from the block's number of rows on, a row of the
        segment. Targets below 0: -1 and -2 lead into the next segment, at its ``roots[0]`` and ``roots[1]``;
        behind -3 the text is over. A root of -3 is that of a last segment without tokens: behind the block
        before it the text is over.

        Returns:
            ``{"eos": int, "block": {"offsets": uint32, "ids": uint32, "targets": int32, "exits": int32},
            "segments": [{"roots": int32[2], "offsets", "ids", "targets"}], "order": uint32}``.
            ``exits[state]`` is -1, or the root at which the next segment may begin before the next token;
            ``order`` holds the molecule's segments.

        Raises:
            InvalidSmiles: if it is no SMILES.
        """
        return self.constraint(smiles).tables()

    def logits_processor(
        self, smiles: Sequence[str], *, sampling: Sampling | None = None, first_prompt: int = 0
    ) -> AutomatonLogitsProcessor:
        """A logits processor of transformers for one call of ``generate``.

        Args:
            smiles: one for each prompt, in their order. Rows of ``num_return_sequences`` and beams follow
                their prompt.
            sampling: draws the tokens here, with noise that is keyed by the text; call ``generate`` with
                ``do_sample=False`` then.
            first_prompt: the number of the first molecule, by which its noise is keyed.

        Raises:
            InvalidSmiles: if one is none.
        """
        from moldrift.logits_processor import AutomatonLogitsProcessor

        return AutomatonLogitsProcessor(self, smiles, sampling=sampling, first_prompt=first_prompt)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source.tokenizer.name!r}, dialect={self.dialect!r})"


def _completion(ids: Any, number: int) -> npt.NDArray[np.int64]:
    """The ids of one completion."""
    if hasattr(ids, "detach"):  # a tensor, on whatever device
        ids = ids.detach().cpu().numpy()
    try:
        found = np.asarray(ids)
    except ValueError:  # rows of different lengths
        found = np.empty((0, 0))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DriftError(
            f"legal: completion {number} is no row of token ids; give integers, and one row for each SMILES"
        )
    return np.ascontiguousarray(found, dtype=np.int64)
