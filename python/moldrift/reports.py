"""drift's ways through that end in a report: what the program prints with ``--json``, as dicts.

Fractions are from 0 to 1, lengths in Å. All of these run in Rust, on all cores (set ``RAYON_NUM_THREADS`` for
fewer) and without the interpreter's lock; Ctrl-C ends them within a moment, and nothing is half-written.
Results do not depend on the number of threads.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, TypeAlias, overload

from moldrift import _lib
from moldrift.progress import ProgressCallback, shown_on_terminal
from moldrift.sources import EncodingLike, encoding_name
from moldrift.tokenizers import TokenizerLike, tokenizer_source

__all__ = ["Report", "audit", "encode", "fit", "inspect", "mine", "train_tokenizer"]

Path: TypeAlias = "str | os.PathLike[str]"
#: One path or several.
Paths: TypeAlias = "Path | Iterable[Path]"
#: False for none, True for a bar on stderr if that is a terminal, or a function of your own.
Progress: TypeAlias = "bool | ProgressCallback"
Zeros: TypeAlias = Literal["fixed", "stripped"]
ZerosOrAuto: TypeAlias = Literal["fixed", "stripped", "auto"]
Separator: TypeAlias = Literal["comma", "space"]
Frame: TypeAlias = Literal["keep", "principal", "first-atoms"]
OpenStereo: TypeAlias = Literal["keep", "skip"]
#: What becomes of molecules without a usable text in coverage and matching.
Missing: TypeAlias = Literal["zero", "leave-out"]
#: What becomes of coordinates beyond the range of an encoding.
OutOfRange: TypeAlias = Literal["clip", "skip"]

#: The placeholder that drift is counted against.
PLACEHOLDER = "0.0000,0.0000,0.0000"


class Report(dict[str, Any]):
    """A report: the JSON document of the program as a dict, whose fields are attributes too.

    `rows` makes flat dicts of what a report lists, which is what ``pandas.DataFrame`` takes.

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
        """What the report lists under a field, and under a field of that, as flat dicts.

        Names of nested fields are joined by dots. An entry of an inner list carries the fields of the entry
        that it belongs to, lists left out; its own come first where both have a name. Without a field there
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
    candidates: Iterable[str] = (),
    tolerance: float = 1e-3,
    weights: tuple[float, float, float] | None = None,
    classes: bool = True,
    seed: int = 0,
    output: Path | None = None,
    frame: Frame = "keep",
    smiles_of: Path | None = None,
    property: str | None = None,
    open_stereo: OpenStereo = "keep",
    encoding: EncodingLike | None = None,
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """The placeholder of least harm for a tokenizer on a corpus, with the proof that none does less.

    Args:
        corpus: files and folders of conformers in any format that drift reads; by default the corpus that
            comes with it.
        tokenizer: one or several; by default ``qwen-like`` and ``llama-like``, which come with drift.
        dialect: how numbers are written: all decimals, trailing zeros stripped, or as the corpus says.
        candidates: placeholders to judge, and to choose from, beside the users' own, such as
            ``1.23,-4.56,7.89``.
        tolerance: induced RMSD up to this is no harm, in Å.
        weights: of unparsable blocks, RMSD in Å and junk slots per block, summed, instead of their order.
        classes: whether to try a placeholder per class of block.
        seed: of the search and of the samples.
        output: a folder for ``<tokenizer>.json`` and ``fit.html``.
        frame: of coordinates, as `mine` says.
        smiles_of: a file of SMILES by the name of a molecule, for conformers without text.
        property: the data item of SDF, or the key of an XYZ comment, that holds the SMILES.
        open_stereo: whether to keep or to skip conformers with stereo that their SMILES leaves open.
        encoding: how coordinates are written, in place of dialect, decimals and separator: ``fixed-3``,
            ``binned-v1:LOW,HIGH,STEP``, ``binned-v2:LOW,HIGH,STEP``, ``fsq:N``, or the path of a file.
        decimals: of the coordinates, 0 to 6; numbers with more are cut. Without it four, and more are
            refused.
        separator: what stands between the numbers of a block; a comma by default.
        progress: True for a bar on stderr if that is a terminal, or a function.

    Returns:
        ``results``, one per tokenizer and dialect, each with its ``placeholder``, ``certificate`` and
        ``candidates``; ``refused``, tokenizers that no position template can be used with.

    Raises:
        DriftError: if something cannot be read or does not go together, or all tokenizers are refused.

    >>> report = fit(tokenizer="qwen-like", classes=False)
    >>> report.results[0]["placeholder"]
    '0.0000,0.0000,0.0000'
    >>> row = report.rows("results", "candidates")[0]
    >>> row["placeholder"], row["free_tokens"], round(row["truncated_blocks"], 3)
    ('0.0000,0.0000,0.0000', 20, 0.501)
    """
    several = isinstance(tokenizer, Sequence) and not isinstance(tokenizer, str)
    tokenizers: Sequence[TokenizerLike] = tokenizer if several else (tokenizer,)  # type: ignore[assignment]
    options = {
        "corpus": _paths(corpus),
        "tokenizers": [tokenizer_source(one) for one in tokenizers],
        "dialect": dialect,
        "candidates": list(candidates),
        "tolerance": tolerance,
        "weights": weights,
        "seed": seed,
        "classes": classes,
        "output": output,
        "reading": _reading(smiles_of, property, open_stereo, frame, decimals, separator, encoding),
    }
    return _report(_lib.fit, options, progress)


def mine(
    inputs: Paths,
    *,
    output: Path | None = None,
    frame: Frame = "keep",
    smiles_of: Path | None = None,
    property: str | None = None,
    open_stereo: OpenStereo = "keep",
    encoding: EncodingLike | None = None,
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """Statistics of conformers, and a compact store of them.

    Args:
        inputs: files and folders, known by content: JSONL, enriched text, SDF, XYZ, GEOM msgpack, RDKit
            pickles, HDF5; each also gzipped or in a .tar(.gz).
        output: the store to write, HDF5; None for statistics alone.
        frame: coordinates as in the file (``keep``), with the centre of mass at the origin and the principal
            axes on x, y, z (``principal``), or with the first atom of the text at the origin, the second on x
            and the third in the plane of x and y (``first-atoms``).
        smiles_of, property, open_stereo, encoding, decimals, separator, progress: as in `fit`.

    Returns:
        ``conformers``, ``molecules``, ``blocks``, ``axes`` (a dict per axis, lengths in Å), ``by_size``,
        ``texts``, ``skipped`` and ``skipped_records``. Tables: ``pandas.DataFrame(report.rows("axes"))``.

    Raises:
        DriftError: if an input cannot be read or holds no conformer, or the store cannot be written.
    """
    options = {
        "inputs": _paths(inputs),
        "output": output,
        "reading": _reading(smiles_of, property, open_stereo, frame, decimals, separator, encoding),
    }
    return _report(_lib.mine, options, progress)


def encode(
    inputs: Paths,
    output: Path | None = None,
    *,
    smiles_of: Path | None = None,
    property: str | None = None,
    open_stereo: OpenStereo = "keep",
    frame: Frame = "keep",
    encoding: EncodingLike | None = None,
    input_encoding: EncodingLike | None = None,
    out_of_range: OutOfRange = "clip",
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """The text that models are trained on, of conformers whose SMILES is known.

    Args:
        inputs: files and folders, known by content: RDKit pickles, SDF, XYZ, GEOM msgpack; each also gzipped
            or in a .tar(.gz).
        output: the file to write, JSON Lines ``{id, canonical_smiles, embedded_smiles,
            embedded_smiles_stripped}``; None to have these dicts in the report's ``records``, in memory.
        input_encoding: how the texts among the inputs are written, where they do not say so themselves.
        out_of_range: whether coordinates beyond the range of the encoding are written as the end of the range and
            counted, or their conformers skipped.
        smiles_of, property, open_stereo, frame, encoding, decimals, separator, progress: as in `fit` and
            `mine`.

    Returns:
        ``conformers`` that were encoded, ``skipped``, ``skipped_by_reason``, ``skipped_records``,
        ``open_stereo``; and ``records`` without an output.

    Raises:
        DriftError: if an input cannot be read or holds no conformer, or the output cannot be written.
    """
    options = {
        "inputs": _paths(inputs),
        "output": output,
        "reading": _reading(smiles_of, property, open_stereo, frame, decimals, separator, encoding),
        "input_encoding": _named(input_encoding),
        "out_of_range": out_of_range,
    }
    with _watched(progress) as watch:
        document, lines = _lib.encode(options, watch)
    report = Report(json.loads(document))
    if lines is not None:
        report["records"] = [json.loads(line) for line in lines.splitlines()]
    return report


def audit(
    texts: Path | Mapping[str, Any] | Iterable[Path | Mapping[str, Any]],
    *,
    dialect: ZerosOrAuto = "auto",
    model: Path | None = None,
    tokenizer: TokenizerLike | None = None,
    placeholder: str = PLACEHOLDER,
    references: Paths = (),
    thresholds: Iterable[float] = (),
    passing: Literal["drift", "3dmolgen"] = "drift",
    missing: Missing = "zero",
    pool: bool = False,
    conformers: Literal["first", "all"] = "first",
    verdicts: Path | None = None,
    matrix: Path | None = None,
    max_atoms: int | None = None,
    encoding: EncodingLike | None = None,
    decimals: int | None = None,
    separator: Separator | None = None,
    progress: Progress = False,
) -> Report:
    """Judges generated text, of any engine: junk, lost digits, grammar, chemistry, geometry.

    Args:
        texts: files of generated text (3DMolGen's smoke reports, JSON Lines, plain text; each also gzipped),
            or records in memory: dicts like ``{"smiles": prompt, "text": what was generated}``, and ``"lp"``
            to tell groups apart.
        dialect: how numbers should be written; ``auto`` takes it from the model's recipe, the texts, or the
            references.
        model: the folder of the model that wrote the texts, whose recipe says the dialect.
        tokenizer: to count drift too.
        placeholder: what drift is counted against.
        references: conformers to compare geometry with: files and folders that `mine` takes, with text.
        thresholds: of coverage, in Å; 0.75 by default.
        passing: whether texts that pass are compared with references, or those too that pass by the rules of 3DMolGen
            alone, read by these rules.
        missing: whether molecules with references and no usable text count 0 in coverage, or are left out of coverage
            and matching as 3DMolGen's ``run_eval`` leaves them out.
        pool: compare texts under the ``geom_smiles`` of their records, with the references of all isomers it pools.
        conformers: whether the first conformer of a text is judged, or each of them.
        verdicts: a file to write a line of JSON to for each text.
        matrix: a file to write the RMSD of all pairs to, ``.npz`` (see `read_matrix`) or ``.pickle``.
        max_atoms: the heavy atoms of the largest molecule that is compared; 1,000 by default.
        encoding, decimals, separator, progress: as in `fit`.

    Returns:
        ``files``, counts by file and logit processor; ``total``; ``examples`` of faults; ``warnings``;
        ``skipped``.

    Raises:
        DriftError: if a file cannot be read or holds no text, or nothing tells the dialect.

    >>> text = "[CONFORMER][C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>[/CONFORMER]"
    >>> report = audit([{"smiles": "CO", "text": text}])
    >>> report.total["samples"], report.total["passed"], report.total["junk_blocks_strict"]
    (1, 1, 0)
    """
    with _as_files(texts) as files:
        options = {
            "files": files,
            "dialect": dialect,
            "model": model,
            "tokenizer": None if tokenizer is None else tokenizer_source(tokenizer),
            "placeholder": placeholder,
            "references": _paths(references),
            "thresholds": [float(one) for one in thresholds],
            "passing": passing,
            "missing": missing,
            "pool": pool,
            "conformers": conformers,
            "verdicts": verdicts,
            "matrix": matrix,
            "max_atoms": max_atoms,
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
    open_stereo: OpenStereo = "keep",
    decimals: int | None = None,
    progress: Progress = False,
) -> Report:
    """A tokenizer that takes few tokens for a block, always the same number, proved; written into a folder.

    One of ``tokens_per_block``, ``budget``, ``merges`` and ``vocab_size`` says how far to go.

    Args:
        base: the tokenizer to extend; None with ``vocab_size``.
        output: a folder for ``tokenizer.json``, ``new_tokens.json``, the files that transformers expects,
            ``embedding_rows.safetensors``, ``MODEL_CARD.md``, ``report.json`` and ``report.html``.
        tokens_per_block: tokens of every block, from < to >, with as few new tokens as can be.
        budget: new tokens at most, with as few tokens a block as can be.
        merges: new tokens, learned on the corpus inside blocks, on top of the base's merges.
        vocab_size: tokens in all, learned from nothing.
        kind: whether brackets may share a token with digits (``fused``: fewest tokens, for a logit processor
            that follows the text) or not (``separate``: for a position template).
        encoding: the encoding whose blocks change, instead of ``dialect`` and ``decimals``; all blocks of bins
            and codes change.
        range: blocks of decimals below this magnitude change, in whole Å.
        dialect: the dialect whose blocks change.
        fewest_decimals: in the stripped dialect, blocks of numbers with at least so many decimals change.
        compare: whether other ways to add as many tokens are set beside it.
        reuse: old tokens whose ids the new ones take, by text or id, or ``"unused"`` for those that no text of
            the corpus uses. Only tokens that no merge uses can go; texts that had one take others.
        corpus: conformers to measure on; by default the corpus that comes with drift.
        model: the checkpoint to fine-tune, a safetensors file or a folder; initial rows for the new tokens are
            written too.
        seed: of the search.
        frame: of coordinates, as `mine` says.
        smiles_of, property, open_stereo, decimals, progress: as in `fit`.

    Returns:
        ``new_tokens``, ``tokens_per_block``, ``drift``, ``range_angstrom``, ``coverage``, ``lower_bound``,
        ``tokens_per_conformer``, ``base_tokens_per_conformer``, and what was checked.

    Raises:
        DriftError: if the base cannot be extended, the aim cannot be reached, or options do not go together.
    """
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
        "corpus": _paths(corpus),
        "model": model,
        "seed": seed,
        "reading": _reading(smiles_of, property, open_stereo, frame, decimals, None, encoding),
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
        tokenizer: whose tokens.
        placeholder: what drift is counted against.

    Returns:
        For each text ``count``, ``free`` and ``copy`` in tokens, ``tokens`` (dicts of ``id``, ``text``,
        ``class``) and ``blocks`` (``free``: T, ``placeholder_free``: F, ``drift``: F - T). One report for one
        text, else a list.

    Raises:
        DriftError: if the tokenizer cannot be read or cannot encode a text, or the placeholder holds a
            bracket.

    >>> report = inspect("[C]<4.0182,1.0374,-0.0007>")
    >>> report.count, report.free
    (23, 20)
    >>> report.blocks
    [{'text': '4.0182,1.0374,-0.0007', 'free': 20, 'placeholder_free': 20, 'drift': 0}]
    """
    given = [texts] if isinstance(texts, str) else list(texts)
    reports = [
        Report(report) for report in json.loads(_lib.inspect(given, tokenizer_source(tokenizer), placeholder))
    ]
    return reports[0] if isinstance(texts, str) else reports


def _report(
    run: Callable[[dict[str, Any], ProgressCallback | None], str], options: dict[str, Any], progress: Progress
) -> Report:
    with _watched(progress) as watch:
        return Report(json.loads(run(options, watch)))


@contextmanager
def _watched(progress: Progress) -> Iterator[ProgressCallback | None]:
    """What is called with news of the work."""
    if progress is True:
        with shown_on_terminal() or nullcontext() as bar:
            yield bar
    else:
        yield progress or None


def _paths(paths: Paths) -> list[str]:
    """One path or several, as strings."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return [os.fspath(path) for path in paths]


def _reading(
    smiles_of: Path | None,
    property: str | None,
    open_stereo: OpenStereo,
    frame: Frame,
    decimals: int | None,
    separator: Separator | None,
    encoding: EncodingLike | None,
) -> dict[str, Any]:
    blocks = {"encoding": _named(encoding), "decimals": decimals, "separator": separator}
    return {
        "smiles_of": smiles_of,
        "property": property,
        "open_stereo": open_stereo,
        "frame": frame,
        "blocks": blocks,
    }


def _named(encoding: EncodingLike | None) -> str | None:
    return None if encoding is None else encoding_name(encoding)


@contextmanager
def _as_files(texts: Path | Mapping[str, Any] | Iterable[Path | Mapping[str, Any]]) -> Iterator[list[str]]:
    """Paths as they are; records in memory as one file beside them."""
    given = [texts] if isinstance(texts, str | os.PathLike | Mapping) else list(texts)
    records = [record for record in given if isinstance(record, Mapping)]
    files = _paths(path for path in given if not isinstance(path, Mapping))
    if not records:
        yield files
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(dict(record)) + "\n" for record in records)
        yield [*files, path]


def _flat(entry: Any, before: str = "", lists: bool = False) -> dict[str, Any]:
    """A dict without dicts inside; lists are left out unless they are wanted."""
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
    """The entries of a field of each entry, with the flat fields of those around them."""
    for around, entry in entries:
        listed = entry[field] if isinstance(entry[field], list) else [entry[field]]
        outer = {} if isinstance(entry, Report) else around | _flat(entry)
        for inner in listed:
            yield outer, inner
