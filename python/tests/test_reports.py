"""The functions that give reports: beside the program, on known figures, on bad input, interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import moldrift

Drift = Callable[..., "subprocess.CompletedProcess[str]"]

TEXTS = """[C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>
[C]<0.0000,0.0000,0.0000>[C]<1.0000,0.0000,0.2500>=[O]<2.0000,0.0000,0.5000>
[N]<1.0441,-0.1274,0.3005>#[C]<0.0127,2.1406,1.7711>
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three conformers as text."""
    path = tmp_path / "corpus.txt"
    path.write_text(TEXTS)
    return path


@pytest.fixture(scope="module")
def conformers(repository: Path) -> Path:
    """Conformers of RDKit in an archive."""
    return repository / "tests/fixtures/rdkit_folder.tar.gz"


def same(report: dict[str, Any], printed: str) -> None:
    """The report is what the program printed, but for the revision of the build and the command line."""
    expected = json.loads(printed)
    expected.pop("command", None)
    report = json.loads(json.dumps(report))
    for one in (report, expected):
        one.get("provenance", {}).pop("revision", None)
    assert report == expected


def same_folders(one: Path, other: Path) -> None:
    """Two folders hold the same files, but for the revision of the build."""
    assert sorted(os.listdir(one)) == sorted(os.listdir(other))
    for path in one.iterdir():
        there = other / path.name
        if path.suffix == ".json" and path.name != "tokenizer.json":
            same(json.loads(path.read_text()), there.read_text())
        elif path.suffix == ".json":
            assert path.read_bytes() == there.read_bytes(), path.name
        else:
            # Cards and pages hold the revision in a line.
            lines, expected = (file.read_text().splitlines() for file in (path, there))
            assert len(lines) == len(expected) > 5, path.name


# Beside the program.


@pytest.mark.program
def test_fit_is_the_programs(drift: Drift, corpus: Path, tmp_path: Path) -> None:
    candidate, mine, theirs = "1.5,-2.25,3.125", tmp_path / "mine", tmp_path / "theirs"
    report = moldrift.fit(corpus, "qwen-like", candidates=[candidate], weights=(1, 2, 3), output=mine)
    arguments = ["--corpus", corpus, "--tokenizer", "qwen-like", "--candidate", candidate]
    ran = drift("fit", *arguments, "--weights", 1, 2, 3, "-o", theirs, "--json")
    same(report, ran.stdout)
    same_folders(mine, theirs)
    assert [candidate in row.values() for row in report.rows("results", "candidates")].count(True) == 1


@pytest.mark.program
def test_a_corpus_is_turned_into_a_frame(drift: Drift, corpus: Path) -> None:
    report = moldrift.fit(corpus, "qwen-like", dialect="fixed", classes=False, frame="first-atoms")
    arguments = ["--corpus", corpus, "--tokenizer", "qwen-like", "--dialect", "fixed", "--no-classes"]
    same(report, drift("fit", *arguments, "--frame", "first-atoms", "--json").stdout)
    assert report != moldrift.fit(corpus, "qwen-like", dialect="fixed", classes=False)


@pytest.mark.program
def test_mine_is_the_programs(drift: Drift, conformers: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine.h5", tmp_path / "theirs.h5"
    report = moldrift.mine(conformers, output=mine, frame="principal")
    same(report, drift("mine", conformers, "--frame", "principal", "-o", theirs, "--json").stdout)
    assert 0 < mine.stat().st_size == theirs.stat().st_size
    # The store is a corpus again.
    assert moldrift.mine([mine]).conformers == report.conformers == 6


@pytest.mark.program
def test_flaws_are_those_of_the_program(drift: Drift, tmp_path: Path) -> None:
    text = "[C]<0.0,0.0,0.0>[C]<1.5,0.0,0.0>[O]<2.0,1.3,0.0>"
    texts = [text, text, text.replace("1.5", "0.2"), text.replace("[C]<1.5,0.0,0.0>", "[C]<1.5,0.0,0.0>.")]
    corpus, mine, theirs = (tmp_path / name for name in ("corpus.jsonl", "mine.jsonl", "theirs.jsonl"))
    corpus.write_text("".join(json.dumps({"embedded_smiles": one}) + "\n" for one in texts))
    report = moldrift.mine(corpus, check=True, list=mine)
    same(report, drift("mine", corpus, "--check", "--list", theirs, "--json").stdout)
    assert mine.read_bytes() == theirs.read_bytes()
    kinds = {json.loads(line)["kind"] for line in mine.read_text().splitlines()}
    assert kinds >= {"duplicate-text", "short-bond", "fragments"} and report["check"]
    assert "check" not in moldrift.mine(corpus) or moldrift.mine(corpus)["check"] is None
    kept = moldrift.encode(corpus, drop=["duplicate-text", "short-bond"])
    words = ("encode", corpus, "--drop", "duplicate-text,short-bond", "-o", theirs, "--json")
    ran = json.loads(drift(*words).stdout)
    assert kept["dropped"] == ran["dropped"] and len(kept.records) == 2
    assert kept.records == [json.loads(line) for line in theirs.read_text().splitlines()]
    assert len(moldrift.encode(corpus, drop="fragments").records) == 3


@pytest.mark.program
def test_encode_is_the_programs(drift: Drift, conformers: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine.jsonl", tmp_path / "theirs.jsonl"
    report = moldrift.encode(conformers, mine)
    same(report, drift("encode", conformers, "-o", theirs, "--json").stdout)
    assert mine.read_bytes() == theirs.read_bytes()
    in_memory = moldrift.encode(conformers)
    assert in_memory.records == [json.loads(line) for line in mine.read_text().splitlines()]


@pytest.mark.program
def test_bins_go_through_the_reports(conformers: Path, tmp_path: Path) -> None:
    name = "binned-v2:-13,13,0.104"
    encoded = moldrift.encode(conformers, encoding=name)
    assert encoded.encoding == name and encoded.out_of_range == 0
    assert {record["encoding"] for record in encoded.records} == {name}
    texts = [record["embedded_smiles"] for record in encoded.records]
    assert all(re.match(r"\[[^]]+\]\d{9};", text) for text in texts)
    path = tmp_path / "bins.jsonl"
    moldrift.encode(conformers, path, encoding=name)
    assert moldrift.mine(path, encoding=name).conformers == encoded.conformers
    records = [
        {
            "smiles": record["canonical_smiles"],
            "text": f"[CONFORMER]{record['embedded_smiles']}[/CONFORMER]",
        }
        for record in encoded.records
    ]
    assert moldrift.audit(records, encoding=name).total["passed"] == encoded.conformers
    back = moldrift.encode(path, encoding="fixed-2", input_encoding=name)
    assert back.conformers == encoded.conformers and back.encoding == "fixed-2"
    with pytest.raises(moldrift.DriftError, match="encoding"):
        moldrift.mine(path, encoding=name, decimals=3)


@pytest.mark.program
def test_smiles_come_from_the_columns_that_are_named(drift: Drift, tmp_path: Path) -> None:
    path, names, out = tmp_path / "frames.xyz", tmp_path / "names.csv", tmp_path / "out.jsonl"
    atoms = ["C 0 0 0", "O 1.4 0 0", "H -0.4 1 0", "H -0.4 -0.5 0.9", "H -0.4 -0.5 -0.9", "H 1.7 0.9 0"]
    path.write_text("\n".join(["6", "mol: A kind: x", *atoms, ""]))
    names.write_text("# by hand\nID;Mol ID;Structure;smiles\n1;A;CO;N\n")
    columns = {"name_property": "mol", "name_column": "mol id", "smiles_column": "structure"}
    [record] = moldrift.encode(path, smiles_of=names, **columns).records
    assert record["canonical_smiles"] == "CO"
    options = [word for name, value in columns.items() for word in (f"--{name.replace('_', '-')}", value)]
    assert drift("encode", path, "--smiles", names, *options, "-o", out).returncode == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [record]
    assert moldrift.mine(path, smiles_of=names, **columns).conformers == 1
    with pytest.raises(moldrift.DriftError, match="choose from `ID`, `Mol ID`, `Structure`"):
        moldrift.encode(path, smiles_of=names, smiles_column="none")


@pytest.mark.program
def test_audit_is_the_programs(drift: Drift, tmp_path: Path) -> None:
    records = [
        {"smiles": "CO", "text": "[CONFORMER][C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>[/CONFORMER]"},
        {"smiles": "CO", "text": "[CONFORMER][C]<0.5170,1.2,0.0131>[O]<1.22,x,0.1142>[/CONFORMER]"},
        {"smiles": "CO", "text": "nothing"},
    ]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    report = moldrift.audit(path, tokenizer="qwen-like")
    same(report, drift("audit", path, "--tokenizer", "qwen-like", "--json").stdout)
    assert (report.total["samples"], report.total["passed"], report.total["no_eos"]) == (3, 1, 1)
    same(moldrift.audit(records, tokenizer="qwen-like"), json.dumps(report))


ETHER = "[CONFORMER][C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>[C]<2.6218,0.0415,0.1142>[/CONFORMER]"
METHANOL = "[CONFORMER][C]<0.5170,1.2034,0.0131>[O]<1.2218,0.0415,0.1142>[/CONFORMER]"


def test_lists_of_texts_are_rows_as_files_of_them_are(tmp_path: Path) -> None:
    smiles = ["CO", "COC"]
    rows = {
        "plain": [METHANOL, "nothing", ETHER.replace("1.2034", "1.3"), "[CONFORMER][C]"],
        "grammar": [METHANOL, METHANOL.replace("0.0415", "0.0425"), ETHER, ETHER],
    }
    report = moldrift.audit(rows, smiles=smiles, against_row="plain", dialect="fixed")
    lines = [
        {"smiles": smiles[at // 2], "generation": at % 2, "text": text, "lp": lp}
        for lp, texts in rows.items()
        for at, text in enumerate(texts)
    ]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    same(report, json.dumps(moldrift.audit(path, against_row="plain", dialect="fixed")))
    assert [(run["lp"], run["passed"]) for run in report.runs] == [("plain", 2), ("grammar", 4)]
    assert report.comparisons[0]["passed_difference"] == 2
    # Records under labels, generators, another field, and a list without labels.
    unlabelled = [{name: value for name, value in line.items() if name != "lp"} for line in lines]
    records = {"plain": unlabelled[:4], "grammar": (record for record in unlabelled[4:])}
    same(moldrift.audit(records, against_row="plain", dialect="fixed"), json.dumps(report))
    named = moldrift.audit(rows, smiles=smiles, row_field="engine", against_row="plain", dialect="fixed")
    assert named.comparisons == report.comparisons
    alone = moldrift.audit(rows["grammar"], smiles=smiles, dialect="fixed")
    assert (alone.total["samples"], alone.total["passed"]) == (4, 4)
    # A record whose texts are a list is no row.
    listed = [{"smiles": "CO", "all_generations": [{"decoded_text": METHANOL}]}]
    assert moldrift.audit(listed, dialect="fixed").total["passed"] == 1


@pytest.mark.parametrize(
    ("texts", "options", "words"),
    [
        ({"plain": [METHANOL], "grammar": []}, {"smiles": "CO"}, "row `grammar`: has no text"),
        ({"plain": [METHANOL]}, {}, "row `plain`: holds strings; give the molecules as smiles"),
        ({"plain": [METHANOL] * 3}, {"smiles": ["CO", "OC"]}, "row `plain`: has 3 texts for 2 SMILES"),
        ({"plain": [METHANOL]}, {"smiles": []}, "row `plain`: has 1 texts for 0 SMILES"),
        ({"plain": [{"smiles": "CO", "text": METHANOL}]}, {"smiles": "CO"}, "leave smiles out"),
        (
            {"plain": [METHANOL, {"text": METHANOL}]},
            {"smiles": "CO"},
            "row `plain`: mixes strings and records",
        ),
        ({"plain": [METHANOL, None]}, {"smiles": "CO"}, "row `plain`: text 1 is NoneType"),
        ({3: [METHANOL]}, {"smiles": "CO"}, "the label of a row is 3"),
        ({"plain": [METHANOL]}, {"smiles": "CO", "row_field": "file"}, "row_field"),
        ({"plain": [METHANOL], "a": [METHANOL]}, {"smiles": "CO", "against_row": "Plain"}, "differ in case"),
        ([METHANOL], {"smiles": ["CO", "OC"]}, "texts: has 1 texts for 2 SMILES"),
    ],
)
def test_rows_that_do_not_fit_are_refused(texts: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(moldrift.DriftError, match=re.escape(words)) as error:
        moldrift.audit(texts, **{"dialect": "fixed", **options})
    assert "\n" not in str(error.value)


@pytest.mark.program
def test_train_tokenizer_is_the_programs(drift: Drift, corpus: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    report = moldrift.train_tokenizer(vocab_size=270, range=1, corpus=corpus, output=mine)
    arguments = ["--vocab-size", 270, "--range", 1, "--corpus", corpus, "-o", theirs, "--json"]
    same(report, drift("train-tokenizer", *arguments).stdout)
    same_folders(mine, theirs)
    assert moldrift.inspect(TEXTS.splitlines()[0], mine).count > 0


@pytest.mark.slow  # As below.
def test_train_tokenizer_takes_any_encoding(drift: Drift, corpus: Path, tmp_path: Path) -> None:
    mine, theirs, name = tmp_path / "mine", tmp_path / "theirs", "binned-v2:-13,13,0.104"
    options = {"kind": "separate", "encoding": name, "tokens_per_block": 4, "corpus": corpus}
    report = moldrift.train_tokenizer("qwen-like", reuse="unused", output=mine, **options)
    arguments = ["--kind", "separate", "--encoding", name, "--tokens-per-block", 4, "--corpus", corpus]
    ran = drift(
        "train-tokenizer", "--base", "qwen-like", *arguments, "--reuse", "unused", "-o", theirs, "--json"
    )
    same(report, ran.stdout)
    same_folders(mine, theirs)
    assert (report.new_tokens, report.reused_ids, report.drift) == (251, 251, 0)
    listed = json.loads((mine / "new_tokens.json").read_text())["new_tokens"]
    named = moldrift.train_tokenizer(
        "qwen-like", reuse=[listed[-1]["replaces"]], output=tmp_path / "named", **options
    )
    assert named.reused_ids == 1


@pytest.mark.program
def test_inspect_is_the_programs(drift: Drift) -> None:
    texts = TEXTS.splitlines()
    reports = moldrift.inspect(texts, "llama-like", placeholder="-0.0000,0.0000,0.0000")
    arguments = ["--tokenizer", "llama-like", "--placeholder=-0.0000,0.0000,0.0000", "--json"]
    assert json.loads(json.dumps(reports)) == json.loads(drift("inspect", *arguments, *texts).stdout)


# Known figures.


@pytest.mark.program
def test_the_built_in_corpus_has_its_placeholder() -> None:
    phases: list[tuple[str, int, int | None, str]] = []
    report = moldrift.fit(classes=False, progress=lambda *news: phases.append(news))
    chosen = {(one["tokenizer"], one["dialect"]): one["placeholder"] for one in report.results}
    assert report.corpus["blocks"] == 144_060
    assert chosen["qwen-like", "fixed"] == "0.0000,0.0000,0.0000"
    rows = report.rows("results", "candidates")
    truncated = {
        (row["tokenizer"], row["dialect"], row["placeholder"]): row["truncated_blocks"] for row in rows
    }
    assert truncated["qwen-like", "fixed", "0.000,0.000,0.000"] == 1.0
    assert round(truncated["qwen-like", "fixed", "0.0000,0.0000,0.0000"], 3) == 0.501
    # Which of its phases are seen depends on how long each takes; that one is seen does not.
    assert phases and {phase for phase, *_ in phases} <= {"reading", "replaying", "fitting"}
    assert all(total is None or done <= total for _, done, total, _ in phases)


@pytest.mark.slow  # Every number in every position, and 10 MB of text, are run.
def test_an_extension_takes_as_many_tokens_as_it_says(corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "extended"
    report = moldrift.train_tokenizer(
        "qwen-like", tokens_per_block=12, range=1, corpus=corpus, output=output, kind="separate"
    )
    assert (report.tokens_per_block, report.drift) == (12, 0)
    report = moldrift.inspect("<0.1234,-0.5000,0.9999>", output)
    assert report.count == 12


def test_tokenizers_in_memory_are_those_of_files(repository: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = repository / "tokenizers/qwen-like"
    text = TEXTS.splitlines()[0]
    in_memory = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert moldrift.inspect(text, in_memory) == moldrift.inspect(text, folder)
    transformers = pytest.importorskip("transformers")
    fast = transformers.AutoTokenizer.from_pretrained(folder)
    assert moldrift.inspect(text, fast) == moldrift.inspect(text, folder)
    report = moldrift.fit([], fast, classes=False, dialect="fixed")
    assert report.results[0]["tokenizer"] == "qwen-like"


def test_rows_are_what_pandas_takes(conformers: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(moldrift.mine(conformers).rows("axes"))
    assert list(frame["axis"]) == ["x", "y", "z"]
    assert frame["summary.mean"].dtype == float


# Bad input: the one line of drift, as an exception of the package.


BAD: list[tuple[str, Callable[[Path], object], str]] = [
    ("fit, no corpus", lambda folder: moldrift.fit(folder / "none"), "none: no such file or folder"),
    ("fit, a candidate", lambda _: moldrift.fit(candidates=["a"]), "‘candidate’: `a` is not three numbers"),
    ("fit, a tolerance", lambda _: moldrift.fit(tolerance=-1), "‘tolerance’: not a length"),
    ("fit, weights", lambda _: moldrift.fit(weights=(1, float("nan"), 1)), "‘weights’: not three weights"),
    ("fit, a dialect", lambda _: moldrift.fit(dialect="open"), "dialect: `open` is none of its words"),
    ("fit, twice", lambda _: moldrift.fit(tokenizer=["qwen-like"] * 2), "two tokenizers are named qwen-like"),
    ("fit, decimals", lambda _: moldrift.fit(decimals=9), "‘decimals’: numbers have 0 to 6 decimals, not 9"),
    ("mine, nothing", lambda folder: moldrift.mine(folder / "empty"), "the folder contains no file to read"),
    (
        "mine, a frame",
        lambda folder: moldrift.mine(folder, frame="mine"),
        "frame: `mine` is none of its words",
    ),
    (
        "mine, a list",
        lambda folder: moldrift.mine(folder / "corpus.txt", list=folder / "list"),
        "nothing is checked",
    ),
    (
        "encode, a kind",
        lambda folder: moldrift.encode(folder / "corpus.txt", drop="bad"),
        "drop: `bad` is none of its words",
    ),
    (
        "encode, nothing",
        lambda folder: moldrift.encode(folder / "empty"),
        "the folder contains no file to read",
    ),
    (
        "encode, its input",
        lambda folder: moldrift.encode(folder / "corpus.txt", folder / "corpus.txt"),
        "overwrite",
    ),
    (
        "encode, no folder",
        lambda folder: moldrift.encode(folder / "corpus.txt", folder / "a/b"),
        "there is no folder",
    ),
    ("audit, no file", lambda folder: moldrift.audit(folder / "none"), "none: No such file or directory"),
    ("audit, a model", lambda folder: moldrift.audit([{"text": ""}], model=folder / "none"), "is no folder"),
    ("audit, a placeholder", lambda _: moldrift.audit([{"text": ""}], placeholder="0,0"), "‘placeholder’:"),
    (
        "a goal",
        lambda folder: moldrift.train_tokenizer("qwen-like", output=folder / "a"),
        "0 goals are given",
    ),
    (
        "two",
        lambda f: moldrift.train_tokenizer(merges=1, budget=1, output=f / "a"),
        "2 goals are given, not one",
    ),
    (
        "a base",
        lambda folder: moldrift.train_tokenizer(budget=100, output=folder / "a"),
        "‘base’: is missing",
    ),
    ("range", lambda f: moldrift.train_tokenizer("qwen-like", budget=9, range=0, output=f / "a"), "‘range’:"),
    ("inspect, brackets", lambda _: moldrift.inspect("", placeholder="<0>"), "`<0>` contains a bracket"),
    (
        "inspect, a tokenizer",
        lambda folder: moldrift.inspect("", folder / "empty"),
        "contains no tokenizer.json",
    ),
]


@pytest.mark.parametrize(("act", "words"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_bad_input_is_one_line(
    act: Callable[[Path], object], words: str, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(moldrift.DriftError) as raised:
        act(corpus.parent)
    message = str(raised.value)
    assert words in message
    assert "\n" not in message
    assert sorted(tmp_path.rglob("*")) == before
    assert corpus.read_text() == TEXTS


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(moldrift.TokenizerRefused, match=r"object: has no tokenizer\.json"):
        moldrift.inspect("", object())  # type: ignore[call-overload]


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="this report has no runs; it has text, count"):
        _ = moldrift.inspect("C").runs


def test_what_progress_raises_ends_the_work(repository: Path, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def raises(*_: object) -> None:
        raise Enough

    with pytest.raises(Enough):
        moldrift.mine(
            [repository / "corpora/training.jsonl.gz"] * 20, output=tmp_path / "a.h5", progress=raises
        )
    assert os.listdir(tmp_path) == []


# Interrupted.


INTERRUPTED = """
import signal, sys, moldrift
# Ignored where this runs in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
def tell(phase, done, total, unit):
    print(phase, flush=True)
corpus, output = [sys.argv[2]] * 200, sys.argv[3]
try:
    if sys.argv[1] == "fit":
        moldrift.fit(corpus, "qwen-like", output=output, progress=tell)
    else:
        getattr(moldrift, sys.argv[1])(corpus, output=output, progress=tell)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("verb", ["fit", "mine", "encode"])
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_leaves_nothing_behind(verb: str, repository: Path, tmp_path: Path) -> None:
    corpus = repository / "corpora/training.jsonl.gz"
    words = [sys.executable, "-c", INTERRUPTED, verb, str(corpus), str(tmp_path / "output")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert first.strip() == "reading"
    assert rest.strip().splitlines()[-1] == "interrupted"
    assert process.returncode == 0
    assert os.listdir(tmp_path) == []
