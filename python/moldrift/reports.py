"""drift's commands as functions. They return the reports that the program prints with ``--json``, as dicts.

Fractions are from 0 to 1, lengths in Å. The functions run in Rust, on all cores (set ``RAYON_NUM_THREADS`` for
fewer) and without the interpreter's lock (GIL). Ctrl-C ends them within a moment, and leaves no partial file. Results
do not depend on the number of threads.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, TypeAlias, overload

import moldrift._lib as _lib
from moldrift.arguments import is_text, json_text, named_fields, numbers, whole_numbers
from moldrift.errors import DriftError
from moldrift.progress import ProgressCallback, shown_on_terminal
from moldrift.sources import EncodingLike, encoding_name
from moldrift.text_rows import Text, is_rows, plain_records, records, records_of_rows
from moldrift.tokenizers import TokenizerLike, tokenizer_source

__all__ = ["Report", "audit", "encode", "fit", "inspect", "mine", "train_tokenizer"]

Path: TypeAlias = "str | os.PathLike[str]"
#: One path or several.
Paths: TypeAlias = "Path | Iterable[Path]"
#: False for no progress, True for a bar on stderr if that is a terminal, or a function of your own.
Progress: TypeAlias = "bool | ProgressCallback"
Zeros: TypeAlias = Literal["fixed", "stripped"]
ZerosOrAuto: TypeAlias = Literal["fixed", "stripped", "auto"]
Separator: TypeAlias = Literal["comma", "space"]
Frame: TypeAlias = Literal["keep", "principal", "first-atoms"]
OpenStereo: TypeAlias = Literal["keep", "skip"]
#: Whether isotope labels tell molecules and their atoms apart.
Isotopes: TypeAlias = Literal["ignore", "respect"]
#: How coverage and matching treat molecules without a usable text.
Missing: TypeAlias = Literal["zero", "leave-out"]
#: What to do with conformers that have a coordinate outside the range of the encoding.
OutOfRange: TypeAlias = Literal["clip", "skip"]

#: The placeholder that drift is counted against.
PLACEHOLDER = "0.0000,0.0000,0.0000"


class Report(dict[str, Any]):
    """A report: the JSON document of the program as a dict, whose fields are also attributes.

    `rows` turns the lists in a report into flat dicts, as ``pandas.DataFrame`` takes them.

    >>> results = [{"name": "x", "size": {"blocks": 2}, "parts": [{"n": 1}, {"n": 2}]}]
    >>> report = Report(file="a", results=results)
    >>> report.results[0]["name"]
    'x'
    >>> report.rows("results", "parts")
    [{'name': 'x', 'size.blocks': 2, 'n': 1}, {'name': 'x', 'size.blocks': 2, 'n': 2}]
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this report has no {name}; it has {', '.join(self)}") from None

    def rows(self, *fields: str) -> list[dict[str, Any]]:
        """The entries of a list in the report, or of lists inside its entries, as flat dicts.

        Names of nested fields are joined by dots. An entry of an inner list also has the fields of the entry that
        it belongs to, without lists; if both have a field of one name, the inner one counts. Without a field there
        is one row: the report itself.
        """
        if not fields:
            return [_flat(self)]
        entries: list[tuple[dict[str, Any], Any]] = [({}, self)]
        for field in fields:
            entries = list(_inner(entries, field))
        return [around | _flat(entry, lists=True) for around, entry in entries]


def fit(
    corpus: Paths = (),
    tokenizer: TokenizerLike | Sequence[TokenizerLike] = (),
    *,
    dialect: ZerosOrAuto = "auto",
    candidates: str | Iterable[str] = (),
    tolerance: float = 1e-3,
    weights: tuple[float, float, float] | None = None,
    classes: bool = True,
    seed: int = 0,
    output: Path | None = None,
    frame: Frame = "keep",
    smiles_of: Path | None = None,
    property: str | None = None,
    name_property: str | None = None,
    name_column: str | None = None,
    smiles_column: str | None = None,
    open_stereo: OpenStereo = "keep",
    where: str | Iterable[str] = (),
    encoding: EncodingLike | None = None,
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """Finds the placeholder with the least harm for a tokenizer on a corpus, and proves that no other does less.

    Args:
        corpus: files and folders of conformers in any format that drift reads; by default the built-in corpus.
        tokenizer: one or several; by default the built-in ``qwen-like`` and ``llama-like``.
        dialect: how numbers are written: with all decimals, without trailing zeros, or as in the corpus.
        candidates: further placeholders to judge and choose from, such as ``1.23,-4.56,7.89``. 3DMolGen's are always
            tried.
        tolerance: an induced RMSD up to this, in Å, counts as no harm.
        weights: the weights of unparsable blocks, RMSD in Å and junk slots per block, to minimise their sum instead of
            one after the other.
        classes: whether to try a different placeholder for each class of block.
        seed: the seed of the search and of the samples.
        output: a folder for ``<tokenizer>.json`` and ``fit.html``.
        frame: the frame of coordinates, as in `mine`.
        smiles_of: a file of SMILES by the name of a molecule, for conformers without text.
        property: the data item of SDF, or the key of an XYZ comment, that contains the SMILES.
        name_property: the data item or key that contains the name of a molecule, to find it in ``smiles_of``.
        name_column, smiles_column: the columns of names and of SMILES in a table ``smiles_of``; by default the usual
            ones, such as ``id`` and ``smiles``.
        open_stereo: whether to keep or to skip conformers whose SMILES leaves their stereo open.
        where: which rows of CSV, TSV and JSON Lines to read: one or several conditions ``column=value``. Several values
            of one column are alternatives, several columns must all agree.
        encoding: how coordinates are written, in place of dialect, decimals and separator: ``fixed``, ``fixed-N``,
            ``stripped``, ``stripped-N``, ``lines``, ``lines-N``, ``integers:SCALE,DIGITS``, ``binned-v1:LOW,HIGH,STEP``,
            ``binned-v2:LOW,HIGH,STEP``, ``fsq:N``, or the path of a file.
        decimals: decimals of the coordinates, 0 to 6; numbers with more are truncated. By default four, and numbers
            with more are refused.
        separator: the separator between the numbers of a block; by default a comma.
        progress: True for a bar on stderr if that is a terminal, or a function.

    Returns:
        ``results``, one per tokenizer and dialect, each with its ``placeholder``, ``certificate`` and
        ``candidates``; ``refused``, the tokenizers for which no position template works.

    Raises:
        DriftError: if something cannot be read, options contradict each other, or all tokenizers are refused.

    >>> report = fit(tokenizer="qwen-like", classes=False)
    >>> report.results[0]["placeholder"]
    '0.0000,0.0000,0.0000'
    >>> row = report.rows("results", "candidates")[0]
    >>> row["placeholder"], row["free_tokens"], round(row["truncated_blocks"], 3)
    ('0.0000,0.0000,0.0000', 20, 0.501)
    """
    several = isinstance(tokenizer, Sequence) and not isinstance(tokenizer, str | bytes)
    tokenizers: Sequence[TokenizerLike] = tokenizer if several else (tokenizer,)  # type: ignore[assignment]
    smiles_options = _smiles(smiles_of, property, name_property, name_column, smiles_column, open_stereo)
    options = {
        "corpus": _paths("corpus", corpus),
        "tokenizers": [tokenizer_source(one) for one in tokenizers],
        "dialect": dialect,
        "candidates": [candidates] if isinstance(candidates, str) else list(candidates),
        "tolerance": tolerance,
        "weights": weights,
        "seed": seed,
        "classes": classes,
        "output": output,
        "reading": _reading(smiles_options, frame, decimals, separator, encoding, where),
    }
    return _report(_lib.fit, options, progress)


def mine(
    inputs: Paths,
    *,
    output: Path | None = None,
    check: bool = False,
    list: Path | None = None,
    frame: Frame = "keep",
    smiles_of: Path | None = None,
    property: str | None = None,
    name_property: str | None = None,
    name_column: str | None = None,
    smiles_column: str | None = None,
    open_stereo: OpenStereo = "keep",
    where: str | Iterable[str] = (),
    encoding: EncodingLike | None = None,
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """Computes statistics of conformers, and writes them to a compact store.

    Args:
        inputs: files and folders, recognised by content: JSONL, enriched text, SDF, XYZ, GEOM msgpack, RDKit
            pickles, HDF5; each also gzipped or in a .tar(.gz).
        output: the HDF5 store to write; None for statistics only.
        check: whether to read the corpus a second time and count what is wrong in it: duplicates, coincident atoms,
            short and long bonds, fragments, stereo marks that are not those of the coordinates (``report["check"]``).
        list: the file for a line of JSON for each conformer and kind that the check finds.
        frame: coordinates as in the file (``keep``), with the centre of mass at the origin and the principal
            axes on x, y, z (``principal``), or with the first heavy atom of the text at the origin, the second on x,
            and the next one off their line in the plane of x and y (``first-atoms``).
        smiles_of, property, name_property, name_column, smiles_column, open_stereo, where, encoding, decimals,
            separator, progress: as in `fit`.

    Returns:
        ``conformers``, ``molecules``, ``blocks``, ``axes`` (a dict per axis, lengths in Å), ``by_size``,
        ``texts``, ``skipped`` and ``skipped_records``. Tables: ``pandas.DataFrame(report.rows("axes"))``.

    Raises:
        DriftError: if an input cannot be read or contains no conformer, or the store cannot be written.
    """
    smiles_options = _smiles(smiles_of, property, name_property, name_column, smiles_column, open_stereo)
    options = {
        "inputs": _paths("inputs", inputs),
        "output": output,
        "check": check,
        "list": list,
        "reading": _reading(smiles_options, frame, decimals, separator, encoding, where),
    }
    return _report(_lib.mine, options, progress)


def encode(
    inputs: Paths,
    output: Path | None = None,
    *,
    smiles_of: Path | None = None,
    property: str | None = None,
    name_property: str | None = None,
    name_column: str | None = None,
    smiles_column: str | None = None,
    open_stereo: OpenStereo = "keep",
    where: str | Iterable[str] = (),
    frame: Frame = "keep",
    encoding: EncodingLike | None = None,
    input_encoding: EncodingLike | None = None,
    out_of_range: OutOfRange = "clip",
    drop: str | Iterable[str] = (),
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """Writes conformers whose SMILES is known as the text that models are trained on.

    Args:
        inputs: files and folders, recognised by content: RDKit pickles, SDF, XYZ, GEOM msgpack; each also gzipped
            or in a .tar(.gz).
        output: the file to write, JSON Lines ``{id, canonical_smiles, embedded_smiles,
            embedded_smiles_stripped}``; with None these dicts are in the report's ``records``. A SMILES that RDKit
            would write differently is under ``smiles`` instead of ``canonical_smiles``.
        input_encoding: the encoding of input texts that do not name their encoding.
        out_of_range: whether a coordinate outside the range of the encoding is written as the end of the range and
            its conformer counted (``clip``), or the conformer is skipped (``skip``).
        drop: kinds of flawed conformers to leave out, counted in ``dropped``: ``duplicate-text``,
            ``duplicate-conformer``, ``coincident-atoms``, ``short-bond``, ``long-bond``, ``fragments``, ``stereo``.
        smiles_of, property, name_property, name_column, smiles_column, open_stereo, where, frame, encoding, decimals,
            separator, progress: as in `fit` and `mine`.

    Returns:
        ``conformers`` that were encoded, ``skipped``, ``skipped_by_reason``, ``skipped_records``,
        ``open_stereo``; and ``records`` if there is no output.

    Raises:
        DriftError: if an input cannot be read or contains no conformer, or the output cannot be written.
    """
    smiles_options = _smiles(smiles_of, property, name_property, name_column, smiles_column, open_stereo)
    options = {
        "inputs": _paths("inputs", inputs),
        "output": output,
        "reading": _reading(smiles_options, frame, decimals, separator, encoding, where),
        "input_encoding": _named(input_encoding),
        "out_of_range": out_of_range,
        "drop": [drop] if isinstance(drop, str) else list(drop),
    }
    with _watched(progress) as watch, named_fields():
        document, lines = _lib.encode(options, watch)
    report = Report(json.loads(document))
    if lines is not None:
        report["records"] = [json.loads(line) for line in lines.splitlines()]
    return report


def audit(
    texts: Path | Mapping[str, Any] | Mapping[str, Iterable[Text]] | Iterable[Path | Mapping[str, Any]],
    *,
    smiles: str | Iterable[str] | None = None,
    dialect: ZerosOrAuto = "auto",
    model: Path | None = None,
    tokenizer: TokenizerLike | None = None,
    placeholder: str = PLACEHOLDER,
    references: Paths = (),
    thresholds: float | Iterable[float] = (),
    hits: float | Iterable[float] = (),
    at: int | Iterable[int] = (1, 5, 10),
    clusters: float | Iterable[float] = (),
    passing: Literal["drift", "3dmolgen"] = "drift",
    missing: Missing = "zero",
    pool: bool = False,
    conformers: Literal["first", "all"] = "first",
    verdicts: Path | None = None,
    matrix: Path | None = None,
    max_atoms: int | None = None,
    isotopes: Isotopes = "ignore",
    against_row: str | None = None,
    row_field: str = "lp",
    encoding: EncodingLike | None = None,
    decimals: int | None = None,
    separator: Separator | None = None,
    where: str | Iterable[str] = (),
    progress: Progress = False,
) -> Report:
    """Judges texts that any engine generated: junk, lost digits, grammar, chemistry, geometry.

    Args:
        texts: files of generated texts (3DMolGen's smoke reports and pickles, JSON Lines, CSV, plain text),
            or records in memory: dicts like ``{"smiles": prompt, "text": generated text}``, optionally with
            ``"lp"`` to distinguish groups. Or lists of texts by the label of their row, such as
            ``{"plain": texts, "grammar": other_texts}``: strings with ``smiles``, or records. A DataFrame of pandas
            is a list of records.
        smiles: the molecules of texts that are strings: of a row as many texts as SMILES, or K for each, one molecule
            after the other, as ``generate`` of transformers returns them.
        dialect: how numbers should be written; ``auto`` uses the model's recipe, else the texts, else the
            references.
        model: the folder of the model that wrote the texts; its recipe names the dialect.
        tokenizer: the tokenizer with which to count drift; None counts no drift.
        placeholder: the placeholder that blocks are compared with to count drift.
        references: conformers to compare geometry with: files and folders that `mine` reads, with text.
        thresholds: the thresholds of coverage, in Å; by default 0.75.
        hits: thresholds in Å of Hit@K: the share of molecules of which one of K texts is that close to a reference, as
            an expectation over all orders of the texts; needs references.
        at: the numbers K of texts.
        clusters: thresholds in Å of greedy clusters of each molecule's conformers; also measures torsions.
        passing: which texts are compared with references: those that pass drift's rules (``drift``), or also those
            that pass only 3DMolGen's rules, read as 3DMolGen reads them (``3dmolgen``).
        missing: whether molecules with references but no usable text count as 0 in coverage, or are left out of
            coverage and matching as in 3DMolGen's ``run_eval``.
        pool: group texts by the ``geom_smiles`` of their records; compare each with the references of all its isomers.
        conformers: whether to judge the first conformer of a text, or each of them.
        verdicts: a file for one line of JSON per text.
        matrix: a file for the RMSD of every text to every reference, ``.npz`` (see `read_matrix`) or ``.pickle``.
        max_atoms: the largest number of heavy atoms of a molecule that is compared; by default 1,000.
        isotopes: whether labels such as ``[13CH3]`` and ``[2H]`` tell molecules and their atoms apart.
        against_row: the row with which all others are compared, text by text: the name of a logit processor
            (``none``), with its placeholder if it has one, of a model, of a file, or its label.
        row_field: the field of records that names their logit processor, or ``file`` if each file is a row of its own.
        encoding, decimals, separator, where, progress: as in `fit`; ``where`` picks the texts, not the references.

    Returns:
        ``files``, counts by file and logit processor; ``total``; ``runs``, one entry a row, with ``hits`` and
        ``clusters`` if they were asked for; with ``against_row`` also
        ``comparisons`` and ``advice``; ``examples`` of faults; ``warnings``; ``skipped``.

    Raises:
        DriftError: if a file cannot be read or contains no text, nothing decides the dialect, or there is no such row.

    >>> text = "[CONFORMER][C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>[/CONFORMER]"
    >>> report = audit([{"smiles": "CO", "text": text}])
    >>> report.total["samples"], report.total["passed"], report.total["junk_blocks_strict"]
    (1, 1, 0)

    Two rows, text by text:

    >>> rows = {"plain": ["[CONFORMER][C]", text], "grammar": [text, text]}
    >>> report = audit(rows, smiles="CO", against_row="plain")
    >>> [(run["lp"], run["passed"]) for run in report.runs], report.comparisons[0]["passed_difference"]
    ([('plain', 1), ('grammar', 2)], 1)
    """
    with _as_files(_given(texts, smiles, row_field)) as files:
        options = {
            "files": files,
            "rows": _conditions(where),
            "dialect": dialect,
            "model": model,
            "tokenizer": None if tokenizer is None else tokenizer_source(tokenizer),
            "placeholder": placeholder,
            "references": _paths("references", references),
            "thresholds": numbers("thresholds", thresholds, "lengths in Å"),
            "hits": numbers("hits", hits, "lengths in Å"),
            "at": whole_numbers("at", at, "numbers of texts"),
            "clusters": numbers("clusters", clusters, "lengths in Å"),
            "passing": passing,
            "missing": missing,
            "pool": pool,
            "conformers": conformers,
            "verdicts": verdicts,
            "matrix": matrix,
            "max_atoms": max_atoms,
            "isotopes": isotopes,
            "row_field": row_field,
            "against_row": against_row,
            "blocks": {"encoding": _named(encoding), "decimals": decimals, "separator": separator},
        }
        return _report(_lib.audit, options, progress)


def train_tokenizer(
    base: TokenizerLike | None = None,
    *,
    output: Path,
    tokens_per_block: int | None = None,
    budget: int | None = None,
    merges: int | None = None,
    vocab_size: int | None = None,
    kind: Literal["fused", "separate"] = "fused",
    encoding: EncodingLike | None = None,
    range: int = 15,
    dialect: Zeros = "fixed",
    fewest_decimals: int | None = None,
    compare: bool = False,
    reuse: Literal["unused"] | Iterable[str | int] | None = None,
    corpus: Paths = (),
    model: Path | None = None,
    seed: int = 0,
    frame: Frame = "keep",
    smiles_of: Path | None = None,
    property: str | None = None,
    name_property: str | None = None,
    name_column: str | None = None,
    smiles_column: str | None = None,
    open_stereo: OpenStereo = "keep",
    where: str | Iterable[str] = (),
    decimals: int | None = None,
    progress: Progress = False,
) -> Report:
    """Extends a tokenizer so that every block takes the same small number of tokens, and writes it into a folder.

    Give one of ``tokens_per_block``, ``budget``, ``merges`` and ``vocab_size``.

    Args:
        base: the tokenizer to extend; None with ``vocab_size``.
        output: a folder for ``tokenizer.json``, ``new_tokens.json``, the files that transformers expects,
            ``embedding_rows.safetensors``, ``MODEL_CARD.md``, ``report.json`` and ``report.html``.
        tokens_per_block: the number of tokens of every block, from < to >, with the fewest new tokens.
        budget: the largest number of new tokens, for the fewest tokens per block.
        merges: the number of tokens to add by continued BPE inside blocks, learned on the corpus.
        vocab_size: the size of a new tokenizer that is trained on the corpus, without a base.
        kind: whether brackets may share a token with digits (``fused``: fewest tokens, for a logit processor
            that follows the text) or not (``separate``: for a position template).
        encoding: the encoding whose blocks change, instead of ``dialect`` and ``decimals``. For bins and codes
            ``range`` does not apply: all blocks change.
        range: blocks of decimals below this magnitude change, in whole Å.
        dialect: the dialect whose blocks change.
        fewest_decimals: in the stripped dialect, blocks of numbers with at least this many decimals change.
        compare: whether to compare other ways to add the same number of tokens.
        reuse: old tokens, by text or id, which are removed and whose ids new tokens get; ``"unused"`` for tokens that
            no text of the corpus uses. Tokens that a merge needs cannot be removed; texts that had one take others.
        corpus: conformers to measure coverage and tokens on; by default the built-in corpus.
        model: the checkpoint to fine-tune, a safetensors file or a folder; initial rows for the new tokens are
            written too.
        seed: the seed of the search.
        frame: the frame of coordinates, as in `mine`.
        smiles_of, property, name_property, name_column, smiles_column, open_stereo, where, decimals, progress: as in
            `fit`.

    Returns:
        ``new_tokens``, ``tokens_per_block``, ``drift``, ``range_angstrom``, ``coverage``, ``lower_bound``,
        ``tokens_per_conformer``, ``base_tokens_per_conformer``, and the checks that were run.

    Raises:
        DriftError: if the base cannot be extended, the aim cannot be reached, or options contradict each other.
    """
    smiles_options = _smiles(smiles_of, property, name_property, name_column, smiles_column, open_stereo)
    options = {
        "base": None if base is None else tokenizer_source(base),
        "output": output,
        "tokens_per_block": tokens_per_block,
        "budget": budget,
        "merges": merges,
        "vocab_size": vocab_size,
        "kind": kind,
        "range": range,
        "dialect": dialect,
        "fewest_decimals": fewest_decimals,
        "compare": compare,
        "reuse": reuse if reuse is None or isinstance(reuse, str) else [str(token) for token in reuse],
        "corpus": _paths("corpus", corpus),
        "model": model,
        "seed": seed,
        "reading": _reading(smiles_options, frame, decimals, None, encoding, where),
    }
    return _report(_lib.train_tokenizer, options, progress)


@overload
def inspect(  # type: ignore[overload-overlap]
    texts: str, tokenizer: TokenizerLike = ..., *, placeholder: str = ...
) -> Report: ...
@overload
def inspect(
    texts: Iterable[str], tokenizer: TokenizerLike = ..., *, placeholder: str = ...
) -> list[Report]: ...
def inspect(
    texts: str | Iterable[str], tokenizer: TokenizerLike = "qwen-like", *, placeholder: str = PLACEHOLDER
) -> Report | list[Report]:
    """The tokens of a text, which of them a position template leaves free, and the drift of its blocks.

    Args:
        texts: a text, or several.
        tokenizer: the tokenizer to use.
        placeholder: the placeholder that blocks are compared with to count drift.

    Returns:
        For each text ``count``, ``free`` and ``copy`` in tokens, ``tokens`` (dicts of ``id``, ``text``,
        ``class``) and ``blocks`` (``free``: T, ``placeholder_free``: F, ``drift``: F - T). One report for one
        text, else a list.

    Raises:
        DriftError: if the tokenizer cannot be read or cannot encode a text, or the placeholder contains a
            bracket.

    >>> report = inspect("[C]<4.0182,1.0374,-0.0007>")
    >>> report.count, report.free
    (23, 20)
    >>> report.blocks
    [{'text': '4.0182,1.0374,-0.0007', 'free': 20, 'placeholder_free': 20, 'drift': 0}]
    """
    given = [texts] if isinstance(texts, str) or not isinstance(texts, Iterable) else list(texts)
    if any(not is_text(text) for text in given):
        raise DriftError(f"texts: {given!r:.60} is no text; give one or several")
    reports = [
        Report(report) for report in json.loads(_lib.inspect(given, tokenizer_source(tokenizer), placeholder))
    ]
    return reports[0] if isinstance(texts, str) else reports


def _report(
    run: Callable[[dict[str, Any], ProgressCallback | None], str], options: dict[str, Any], progress: Progress
) -> Report:
    with _watched(progress) as watch, named_fields():
        return Report(json.loads(run(options, watch)))


@contextmanager
def _watched(progress: Progress) -> Iterator[ProgressCallback | None]:
    """The function that is called with the progress."""
    if progress is True:
        with shown_on_terminal() or nullcontext() as bar:
            yield bar
    else:
        yield progress or None


def _paths(place: str, paths: Any) -> list[str]:
    """One path or several, as strings.

    Raises:
        DriftError: if there is something else among them: a generated text, a mapping, or nothing.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if not isinstance(paths, Iterable) or isinstance(paths, bytes | Mapping):
        raise DriftError(f"{place}: {paths!r:.60} is no path; give files and folders")
    given = list(paths)
    for one in given:
        if not isinstance(one, str | os.PathLike):
            raise DriftError(f"{place}: {one!r:.60} is no path; give files and folders")
        if isinstance(one, str) and _is_enriched(one):
            raise DriftError(
                f"{place}: {one!r:.60} is a text, not a path; {_IN_MEMORY.get(place, 'give files')}"
            )
    return [os.fspath(path) for path in given]


#: What to give in place of a text.
_IN_MEMORY = {
    "texts": "give its molecule too, with smiles= or as a record {'smiles': …, 'text': …}",
    "references": "give files, or take moldrift.Judge, which has references in memory",
}


def _is_enriched(text: str) -> bool:
    """Whether a text has an atom with a block, and is no file."""
    return "]<" in text and not os.path.exists(text)


def _reading(
    smiles: dict[str, Any],
    frame: Frame,
    decimals: int | None,
    separator: Separator | None,
    encoding: EncodingLike | None,
    where: str | Iterable[str] = (),
) -> dict[str, Any]:
    blocks = {"encoding": _named(encoding), "decimals": decimals, "separator": separator}
    return {"smiles": smiles, "rows": _conditions(where), "frame": frame, "blocks": blocks}


def _smiles(
    smiles_of: Path | None,
    property: str | None,
    name_property: str | None,
    name_column: str | None,
    smiles_column: str | None,
    open_stereo: OpenStereo,
) -> dict[str, Any]:
    """Where the SMILES of molecules without text come from."""
    return {
        "smiles_of": smiles_of,
        "property": property,
        "name_property": name_property,
        "name_column": name_column,
        "smiles_column": smiles_column,
        "open_stereo": open_stereo,
    }


def _conditions(where: str | Iterable[str]) -> list[str]:
    """One condition or several, as a list."""
    return [where] if isinstance(where, str) else list(where)


def _named(encoding: EncodingLike | None) -> str | None:
    return None if encoding is None else encoding_name(encoding)


def _given(texts: Any, smiles: str | Iterable[str] | None, row_field: str) -> Any:
    """The texts as files and records."""
    if is_rows(texts):
        return records_of_rows(texts, smiles, row_field)
    if smiles is None:
        return texts
    given: Any = [texts] if isinstance(texts, str | os.PathLike) else texts
    listed = given if isinstance(given, list | tuple) else []
    if files := [text for text in listed if isinstance(text, os.PathLike) or _is_file(text)]:
        raise DriftError(
            f"smiles: is for texts in memory, and {os.fspath(files[0])} is a file, which names the molecules of its texts; "
            "leave smiles out"
        )
    return records(given, smiles)


def _is_file(text: Any) -> bool:
    """Whether a text is the name of a file."""
    return (
        isinstance(text, str)
        and "<" not in text
        and "\n" not in text
        and len(text) < 4096
        and os.path.isfile(text)
    )


@contextmanager
def _as_files(texts: Any) -> Iterator[list[str]]:
    """The paths, and one temporary file with the records in memory."""
    texts = plain_records(texts)
    one = isinstance(texts, str | os.PathLike | Mapping) or not isinstance(texts, Iterable)
    given = [texts] if one else list(texts)
    if not given:
        raise DriftError("texts: there is none; give records, texts with smiles=, or files")
    records = [record for record in given if isinstance(record, Mapping)]
    files = _paths("texts", [path for path in given if not isinstance(path, Mapping)])
    if not records:
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json_text("texts", dict(record)) + "\n" for record in records)
        try:
            yield [*files, path]
        except DriftError as error:
            raise type(error)(str(error).replace(path, "the records in memory")) from error


def _flat(entry: Any, before: str = "", lists: bool = False) -> dict[str, Any]:
    """A dict without nested dicts; lists are left out unless ``lists``."""
    if not isinstance(entry, Mapping):
        return {before.rstrip("."): entry} if before else {"value": entry}
    flat: dict[str, Any] = {}
    for name, value in entry.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{name}.", lists)
        elif lists or not isinstance(value, list):
            flat[before + name] = value
    return flat


def _inner(entries: Iterable[tuple[dict[str, Any], Any]], field: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """The entries in a field of each entry, with the flat fields of the entries around them."""
    for around, entry in entries:
        listed = entry[field] if isinstance(entry[field], list) else [entry[field]]
        outer = {} if isinstance(entry, Report) else around | _flat(entry)
        for inner in listed:
            yield outer, inner
