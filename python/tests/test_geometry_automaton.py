"""The automaton that knows the geometry of a molecule."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moldrift
import moldrift._lib as _lib

NUMBERS = re.compile(r"<([^>]*)>")


def positions(text: str) -> np.ndarray:
    """The positions of a text's atoms, ``[atoms, 3]``, in Å."""
    return np.array([[float(one) for one in block.split(",")] for block in NUMBERS.findall(text)])


def random_ids(one: moldrift.Automaton, smiles: str, seed: int) -> list[int]:
    """A random legal text, with its end."""
    constraint, draw, ids = one.constraint(smiles), random.Random(seed), []
    while not constraint.is_over(ids):
        ids.append(draw.choice(constraint.allowed(ids)[1]))
    return ids


def test_numbers_are_those_at_the_distance_of_a_bond() -> None:
    one = moldrift.GeometryAutomaton("qwen-like", encoding="fixed-1")
    begin = one.source.tokenizer.answer_ids("[CONFORMER][C]<0.3,0.0,0.0>[C]<0.3,0.0")
    constraint = one.constraint("CC")
    found, open_texts = set(), [begin]
    while open_texts:
        ids = open_texts.pop()
        for token in constraint.allowed(ids)[1]:
            longer = [*ids, token]
            text = one.text(longer)
            if text.endswith(">"):
                found.add(text.rsplit(",", 1)[1])
            else:
                open_texts.append(longer)
    # RDKit's bounds of this bond are 1.504 and 1.524 Å, and they may be exceeded by a fifth.
    expected = [f"{z / 10:.1f}>" for z in range(-990, 991) if 0.8 * 1.504 <= abs(z) / 10 <= 1.2 * 1.524]
    assert found == set(expected) and len(found) == 12


@pytest.mark.parametrize(("smiles", "sign"), [("C[C@H](F)Cl", 1), ("C[C@@H](F)Cl", -1)])
def test_stereocentres_have_the_sense_of_their_mark(smiles: str, sign: int) -> None:
    one = moldrift.GeometryAutomaton("qwen-like", encoding="fixed-2")
    free = moldrift.GeometryAutomaton("qwen-like", encoding="fixed-2", signs=False)
    right = {"kept": 0, "free": 0}
    for seed in range(20):
        for name, automaton in (("kept", one), ("free", free)):
            text = automaton.text(random_ids(automaton, smiles, seed)[:-1])
            carbon, centre, fluorine, chlorine = positions(text)
            volume = np.linalg.det([carbon - centre, fluorine - centre, chlorine - centre])
            right[name] += int(np.sign(volume)) == sign
    # Seen from the carbon, hydrogen, fluorine and chlorine follow one another counterclockwise for `@`. A random
    # text may come to a place where no coordinate is left.
    assert right["kept"] >= 18 and 3 <= right["free"] <= 17


def test_legal_rows_are_those_of_allowed_ids() -> None:
    one = moldrift.GeometryAutomaton("llama-like", conformers=2, bounds=0.3)
    smiles = ["C[C@H](F)Cl", "OCC=O", "[NH4+]"]
    texts = [random_ids(one, each, seed) for seed, each in enumerate(smiles)]
    for each, ids, (offsets, legal) in zip(smiles, texts, one.legal(smiles, texts), strict=True):
        plain = moldrift.Automaton("llama-like", conformers=2).legal(each, ids)[0]
        for at in range(len(ids)):
            assert one.allowed_ids(each, ids[:at]) == legal[offsets[at] : offsets[at + 1]].tolist()
        assert offsets[-1] < plain[-1] or each == "[NH4+]"


def test_requests_of_an_engine_are_followed_each_at_its_length() -> None:
    one = moldrift.GeometryAutomaton("qwen-like", encoding="fixed-2")
    smiles = ["CC", "C[C@H](F)Cl", "[NH4+]"]
    texts = [random_ids(one, each, seed) for seed, each in enumerate(smiles)]
    rows = one.legal(smiles, texts)
    requests = [_lib.Request(one.constraint(each)) for each in smiles]
    draw, written = random.Random(7), [0, 0, 0]
    while any(at < len(text) for at, text in zip(written, texts, strict=True)):
        steps = [draw.choice((0, 1, 1, 3)) for _ in texts]
        news = [text[at : at + step] for text, at, step in zip(texts, written, steps, strict=True)]
        (offsets, ids), forbid = _lib.follow_requests(requests, news)
        assert not any(forbid)
        written = [at + len(new) for at, new in zip(written, news, strict=True)]
        assert [request.written for request in requests] == written
        for row, (text, at) in enumerate(zip(texts, written, strict=True)):
            found = ids[offsets[row] : offsets[row + 1]].tolist()
            begin, end = rows[row][0][at : at + 2] if at < len(text) else (0, 0)
            assert found == (rows[row][1][begin:end].tolist() if at < len(text) else [one.eos_token_id])
    assert all(request.problem is None for request in requests)
    # A token that is not allowed ends its own text, and none but its own.
    requests = [_lib.Request(one.constraint("CC")) for _ in range(2)] + [_lib.Request.ended(5, "why")]
    (offsets, ids), _ = _lib.follow_requests(requests, [[*texts[0][:3], -7], texts[0][:3], []])
    assert ids[: offsets[1]].tolist() == [one.eos_token_id] and requests[0].written == 3
    assert ids[offsets[1] : offsets[2]].tolist() == one.allowed_ids("CC", texts[0][:3])
    assert ids[offsets[2] :].tolist() == [5]
    assert "token 3 of a text is -7; " in requests[0].problem
    assert [request.problem for request in requests[1:]] == [None, "why"]
    with pytest.raises(moldrift.DriftError, match="2 for 1 lists"):
        _lib.follow_requests(requests[:2], [[]])


def test_greedy_texts_are_those_of_the_program(drift: Any, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from generation import Model, model_folder, molecules

    model, smiles = Model("qwen-like"), molecules(64)[:6]
    (tmp_path / "smiles").write_text("\n".join(smiles))
    words = [
        "--model",
        model_folder("qwen-like"),
        "--smiles",
        tmp_path / "smiles",
        "--lp",
        "automaton,geometry",
    ]
    done = drift("generate", *words, "--preset", "greedy", "-o", tmp_path / "texts.jsonl", "-q")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
    of = {lp: [line["text"] for line in lines if line.get("lp") == lp] for lp in ("automaton", "geometry")}
    lp = moldrift.GeometryAutomaton(model_folder("qwen-like")).logits_processor(smiles)
    ours = [model.tokenizer.decode(ids[:-1]) for ids in model.generate(smiles, logits_processor=[lp])]
    assert ours == of["geometry"] != of["automaton"]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(moldrift.DriftError, match="bounds.: 0 is not a share"):
        moldrift.GeometryAutomaton("qwen-like", bounds=0)
    with pytest.raises(moldrift.DriftError, match="writes no x, y and z behind each atom"):
        moldrift.GeometryAutomaton("qwen-like", encoding="fsq:4096")
    one = moldrift.GeometryAutomaton("qwen-like")
    with pytest.raises(moldrift.InvalidSmiles, match="has no known geometry"):
        one.constraint("C*")
    with pytest.raises(moldrift.DriftError, match=r"take moldrift\.Automaton"):
        one.grammar("CC")
    first = one.source.tokenizer.answer_ids("[CONFORMER][C]<0.0000,0.0000,0.0000>[C]<5.0000")
    with pytest.raises(moldrift.ForbiddenToken, match="is not legal there"):
        one.legal("CC", first)
