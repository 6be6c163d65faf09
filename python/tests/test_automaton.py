"""The automaton in Python: which texts it allows, its tables, and where tokenizers and ends of text come
from."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from generation import REPOSITORY, model_folder, molecules

import moldrift

TOKENIZERS = ("qwen-like", "llama-like", "qwen-like-fused", "qwen-like-separate")


def random_text(automaton: moldrift.Automaton, smiles: str, seed: int) -> list[int]:
    """A legal text of random tokens, without its end."""
    draw, ids = random.Random(seed), []
    while (allowed := automaton.allowed_ids(smiles, ids)) != [automaton.eos_token_id]:
        assert allowed == sorted(set(allowed))
        ids.append(draw.choice(allowed))
    return ids


@pytest.mark.parametrize("dialect", ["fixed", "stripped"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_random_texts_are_canonical(name: str, dialect: str) -> None:
    automaton = moldrift.Automaton(name, dialect, eos_token_id=0)
    tokenizer = automaton.source.tokenizer
    for seed, smiles in enumerate(molecules(6)):
        ids = random_text(automaton, smiles, seed)
        assert tokenizer.answer_ids(automaton.text(ids)) == ids
        constraint = automaton.constraint(smiles)
        assert constraint.is_over([*ids, 0])
        assert not constraint.is_over(ids)
        assert automaton.allowed_ids(smiles, [*ids, 0]) == [0]


@pytest.mark.parametrize("encoding", ["binned-v1:-21,21,0.05", "binned-v2:-13,13,0.104", "fsq:512"])
@pytest.mark.parametrize("name", ["qwen-like", "llama-like"])
def test_random_texts_of_any_encoding_are_canonical(name: str, encoding: str) -> None:
    automaton = moldrift.Automaton(name, encoding=encoding, eos_token_id=0)
    tokenizer = automaton.source.tokenizer
    for seed, smiles in enumerate(molecules(4)):
        ids = random_text(automaton, smiles, seed)
        assert tokenizer.answer_ids(automaton.text(ids)) == ids
        assert legal_in_tables(automaton.tables(smiles), ids[:9]) == automaton.allowed_ids(smiles, ids[:9])


@pytest.mark.parametrize("name", ["qwen-like", "llama-like"])
def test_answers_of_several_conformers_follow_one_another(name: str) -> None:
    one, two = (
        moldrift.Automaton(name, eos_token_id=0),
        moldrift.Automaton(name, eos_token_id=0, conformers=2),
    )
    for seed, smiles in enumerate(molecules(4)):
        ids = random_text(two, smiles, seed)
        text = two.text(ids)
        assert two.source.tokenizer.answer_ids(text) == ids
        halves = text.split("[/CONFORMER]")[:2]
        assert text == "".join(f"{half}[/CONFORMER]" for half in halves)
        for half in halves:
            assert one.constraint(smiles).is_over(
                [*one.source.tokenizer.answer_ids(f"{half}[/CONFORMER]"), 0]
            )
    opened = moldrift.Automaton(name, eos_token_id=0, opened=True)
    assert opened.text(random_text(opened, "CO", 1)).startswith("[C]<")
    assert moldrift.export_grammar(two, "CO") != moldrift.export_grammar(name, "CO", eos_token_id=0)
    with pytest.raises(ValueError, match="give 1 to 1,000"):
        moldrift.Automaton(name, conformers=0)


def test_an_encoding_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bins.json"
    edges = [-2.0, -1.0, 0.0, 1.5]
    path.write_text(json.dumps({"mode": "uniform", "L": -2.0, "H": 1.5, "n_bins": 3, "edges": edges}))
    automaton = moldrift.Automaton("qwen-like", encoding=path, eos_token_id=0)
    text = automaton.text(random_text(automaton, "CO", 1))
    assert re.fullmatch(r"\[CONFORMER\]\[C\](00[0-4]){3};\[O\](00[0-4]){3};\[/CONFORMER\]", text)
    with pytest.raises(moldrift.DriftError, match="neither an encoding nor a file"):
        moldrift.Automaton("qwen-like", encoding=tmp_path / "none.json")


def legal_in_tables(tables: dict[str, Any], ids: list[int]) -> list[int]:
    """The ids that the tables allow behind a prefix: a reader that shares no code with the package."""
    block, order = tables["block"], tables["order"]
    states = len(block["offsets"]) - 1
    at, place = 0, int(tables["segments"][order[0]]["roots"][0])

    def row(rows: dict[str, Any], index: int) -> dict[int, int]:
        part = slice(rows["offsets"][index], rows["offsets"][index + 1])
        return dict(zip(rows["ids"][part].tolist(), rows["targets"][part].tolist(), strict=True))

    def edges(at: int, place: int) -> dict[int, tuple[int, int]]:
        if place >= states:
            segment = tables["segments"][order[at]]
            return {one: (at, to) for one, to in row(segment, place - states).items()}
        legal, following = {}, None
        if at + 1 < len(order):
            following = tables["segments"][order[at + 1]]
        for one, to in row(block, place).items():
            legal[one] = (at, to) if to >= 0 else (at + 1, int(following["roots"][-1 - to]))
        if block["exits"][place] >= 0:
            legal |= edges(at + 1, int(following["roots"][block["exits"][place]]))
        return legal

    for one in ids:
        at, place = edges(at, place)[one]
    return [tables["eos"]] if place == -3 else sorted(edges(at, place))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tables_are_the_automaton(name: str) -> None:
    automaton = moldrift.Automaton(name, "stripped", eos_token_id=0)
    smiles = molecules(3)[2]
    tables = automaton.tables(smiles)
    ids = random_text(automaton, smiles, 1)
    for end in range(len(ids) + 1):
        assert legal_in_tables(tables, ids[:end]) == automaton.allowed_ids(smiles, ids[:end])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_closing_tag_may_end_a_text(name: str) -> None:
    tokenizer = moldrift.Automaton(name, eos_token_id=0).source.tokenizer
    *_, tag = tokenizer.answer_ids("[CONFORMER][C]<0.0000,0.0000,0.0000>[/CONFORMER]")
    automaton = moldrift.Automaton(name, eos_token_id=tag)
    smiles = molecules(3)[2]
    tables, ids = automaton.tables(smiles), random_text(automaton, smiles, 1)
    for end in range(len(ids) + 1):
        assert legal_in_tables(tables, ids[:end]) == automaton.allowed_ids(smiles, ids[:end])
    assert automaton.allowed_ids(smiles, ids) == [tag]
    assert tokenizer.answer_ids(automaton.text(ids) + "[/CONFORMER]") == [*ids, tag]


def test_grammars_are_those_of_the_program(drift: Any, tmp_path: Path) -> None:
    smiles = molecules(3)
    for format in ("lark", "ebnf", "json"):
        ours = moldrift.export_grammar(model_folder("qwen-like"), smiles, tmp_path / "ours", format=format)
        (tmp_path / "smiles").write_text("\n".join(smiles))
        words = [
            "--tokenizer",
            model_folder("qwen-like"),
            "--dialect",
            "fixed",
            "--smiles",
            tmp_path / "smiles",
        ]
        done = drift("export-grammar", *words, "--format", format, "-o", tmp_path / "theirs")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "theirs").read_text() == (tmp_path / "ours").read_text()
        assert ours[0]["smiles"] == smiles[0]


def test_tokenizers_from_everywhere_are_the_same(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = Path(model_folder("llama-like"))
    (tmp_path / "tokenizer.json.gz").write_bytes(gzip.compress((folder / "tokenizer.json").read_bytes()))
    sources = [
        str(folder),
        folder / "tokenizer.json",
        transformers.AutoTokenizer.from_pretrained(str(folder)),
    ]
    found = [moldrift.Automaton(one) for one in sources]
    end = found[0].eos_token_id
    in_memory = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for one in (in_memory, tmp_path / "tokenizer.json.gz", tmp_path):
        found.append(moldrift.Automaton(one, eos_token_id=[end, 1]))
    grammars = {one.grammar("CC=O", "json") for one in found}
    assert len(grammars) == 1
    assert {one.eos_token_id for one in found} == {end}


def test_the_end_of_text_is_found_where_drift_finds_it(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "tokenizers" / "qwen-like" / "tokenizer.json", tmp_path)

    def eos() -> int:
        return moldrift.Automaton(tmp_path).eos_token_id

    def write(name: str, **settings: Any) -> None:
        (tmp_path / name).write_text(json.dumps(settings))

    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in vocabulary}
    assert eos() == ids["<|endoftext|>"]
    write("tokenizer_config.json", eos_token={"content": "<|im_end|>"})
    assert eos() == ids["<|im_end|>"]
    write("config.json", eos_token_id=7, max_position_embeddings=99)
    assert eos() == 7
    write("generation_config.json", eos_token_id=[9, 7])
    assert eos() == 9
    write("generation_config.json", eos_token_id=[9, ids["<|im_end|>"], 7])
    assert eos() == ids["<|im_end|>"]
    write("generation_config.json", eos_token_id=[9, 7])
    source = moldrift.Automaton(tmp_path).source
    assert source.ends[:2] == (9, 7)
    assert source.context == 99
    assert moldrift.Automaton(tmp_path, eos_token_id=[11, 9]).eos_token_id == 11


def test_draws_are_keyed_and_follow_the_softmax() -> None:
    sampler = moldrift.Sampling(temperature=1.0, seed=3).sampler()
    draws = [sampler.draw([3, 7, 9], [0.0, 1.0, -1.0], at) for at in range(20_000)]
    assert draws[5] == sampler.draw([3, 7, 9], [0.0, 1.0, -1.0], 5)
    # exp(0) / (1 + e + 1/e) and so on; four standard deviations.
    for token, share in ((3, 0.2447), (7, 0.6652), (9, 0.0900)):
        assert abs(draws.count(token) / len(draws) - share) < 0.014
    assert draws != [sampler.draw([3, 7, 9], [0.0, 1.0, -1.0], at, prompt=1) for at in range(20_000)]


def test_an_encoding_may_be_what_its_file_holds() -> None:
    bins = {"mode": "uniform", "L": -1.0, "H": 2.0, "n_bins": 2, "edges": [-1.0, 0.5, 2.0]}
    automaton = moldrift.Automaton("qwen-like", encoding=bins, eos_token_id=0)
    text = automaton.text(random_text(automaton, "CO", 1))
    assert re.fullmatch(r"\[CONFORMER\]\[C\](00[0-3]){3};\[O\](00[0-3]){3};\[/CONFORMER\]", text)
    with pytest.raises(moldrift.DriftError, match="not above"):
        moldrift.Automaton("qwen-like", encoding={**bins, "edges": [0.0, -1.0, 2.0]}, eos_token_id=0)


def test_an_extended_tokenizer_says_its_encoding(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "tokenizers/qwen-like/tokenizer.json", tmp_path)
    assert moldrift.Automaton(tmp_path, eos_token_id=0).dialect == "fixed"
    report = {"schema": "drift.train-tokenizer/1", "dialect": "stripped"}
    (tmp_path / "report.json").write_text(json.dumps(report))
    for place in (tmp_path, tmp_path / "tokenizer.json"):
        assert moldrift.Automaton(place, eos_token_id=0).dialect == "stripped"
    assert moldrift.Automaton(tmp_path, "fixed-3", eos_token_id=0).dialect == "fixed-3"
    # A definition that has no name.
    definition = {
        "schema": "drift.encoding/1",
        "name": "tenths",
        "slots": "atoms",
        "open": "<",
        "separator": ",",
        "close": ">",
        "numbers": 3,
        "number": {
            "kind": "integer",
            "scale": 10,
            "width": 3,
            "most": 99,
            "signed": False,
            "rounding": "nearest",
        },
    }
    report["dialect"] = definition
    (tmp_path / "report.json").write_text(json.dumps(report))
    automaton = moldrift.Automaton(tmp_path, eos_token_id=0)
    assert automaton.allowed_ids("C", automaton.source.tokenizer.answer_ids("[CONFORMER][C]<012"))
