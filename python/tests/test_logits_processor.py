"""The logits processor in transformers' own ``generate``."""

from __future__ import annotations

import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from generation import MODELS, Model, batches, model_folder, molecules  # noqa: E402

import moldrift  # noqa: E402

QWEN3 = moldrift.Sampling.preset("qwen3", seed=5)
load = cache(Model)

#: Molecules for which texts are generated, how many at a time, and of how many each alone: fewer unless CI runs everything.
COUNT, BATCH, ALONE = (64, 32, 6) if os.environ.get("DRIFT_ALL") else (32, 16, 3)


@cache
def texts(name: str, sampled: bool, batch: int = BATCH, count: int = COUNT) -> list[list[int]]:
    """Texts of small molecules, in batches of so many."""
    model, found = load(name), []
    for first, part in batches(molecules(count), batch):
        sampling = QWEN3 if sampled else None
        lp = model.automaton.logits_processor(part, sampling=sampling, first_prompt=first)
        found += model.generate(part, logits_processor=[lp])
    return found


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_text_is_legal_and_canonical(name: str, sampled: bool) -> None:
    for smiles, ids in zip(molecules(COUNT), texts(name, sampled), strict=True):
        load(name).check(smiles, ids)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_text_does_not_depend_on_its_batch(name: str, sampled: bool) -> None:
    assert texts(name, sampled, 1, ALONE) == texts(name, sampled)[:ALONE]


def test_samples_are_those_of_the_program(drift: Any, tmp_path: Path) -> None:
    smiles = molecules(64)[:8]
    (tmp_path / "smiles").write_text("\n".join(smiles))
    words = [
        "--model",
        model_folder("qwen-like"),
        "--smiles",
        tmp_path / "smiles",
        "--samples",
        8,
        "--seed",
        5,
    ]
    words += ["--lp", "automaton", "--preset", "qwen3", "--texts", tmp_path / "texts", "-q"]
    done = drift("eval", *words)
    assert done.returncode == 0, done.stderr
    theirs = [json.loads(line)["text"] for line in (tmp_path / "texts").read_text().splitlines()]
    ours = [load("qwen-like").tokenizer.decode(ids[:-1]) for ids in texts("qwen-like", True)[:8]]
    assert ours == theirs


def test_texts_with_and_without_the_processor_are_compared() -> None:
    model, smiles = load("qwen-like"), molecules(32)
    eos = model.automaton.eos_token_id
    rows = [
        {
            "smiles": one,
            "generation": 0,
            "lp": lp,
            "text": model.tokenizer.decode([id for id in ids if id != eos]),
        }
        for lp, answers in (
            ("none", model.generate(smiles, max_new_tokens=400)),
            ("automaton", texts("qwen-like", False)[:32]),
        )
        for one, ids in zip(smiles, answers, strict=True)
    ]
    report = moldrift.audit(rows, against_row="none")
    without, exact = report.runs
    assert (without["lp"], exact["lp"], exact["passed"], exact["samples"]) == ("none", "automaton", 32, 32)
    [pair] = report.comparisons
    assert pair["passed_difference"] == 32 - without["passed"]
    # What is legal anyway is written with the processor too.
    assert 0 < pair["well_formed_without"] == pair["identical"]
    assert "`automaton`" in report.advice[0]
    with pytest.raises(moldrift.DriftError, match="there is no row `None`.*differ in case"):
        moldrift.audit(rows, against_row="None")


def test_sampling_by_torch_is_legal() -> None:
    model, smiles = load("qwen-like"), molecules(4)
    torch.manual_seed(0)
    lp = model.automaton.logits_processor(smiles)
    found = model.generate(
        smiles, logits_processor=[lp], do_sample=True, temperature=1.2, num_return_sequences=3
    )
    assert len(found) == 12
    for at, ids in enumerate(found):
        model.check(smiles[at // 3], ids)
    assert found[0] != found[1]


def test_beams_follow_their_texts() -> None:
    model, smiles = load("llama-like"), molecules(3)
    lp = model.automaton.logits_processor(smiles)
    options = {"num_beams": 4, "num_return_sequences": 2}
    for at, ids in enumerate(model.generate(smiles, logits_processor=[lp], **options)):
        model.check(smiles[at // 2], ids)


def test_a_beam_of_another_row_is_found_and_texts_may_go_back() -> None:
    automaton, smiles = load("qwen-like").automaton, "CO"
    lp = automaton.logits_processor([smiles])
    start, ids, draw = (
        torch.zeros((3, 5), dtype=torch.int64),
        torch.zeros((3, 0), dtype=torch.int64),
        random.Random(1),
    )
    vocabulary = 2000
    for step in range(40):
        written = torch.cat([start, ids], 1)
        scores = lp(written, torch.zeros((3, vocabulary)))
        for row in range(3):
            legal = torch.isfinite(scores[row]).nonzero()[:, 0].tolist()
            assert legal == automaton.allowed_ids(smiles, ids[row].tolist()), (step, row)
        order = [draw.randrange(3) for _ in range(3)]
        ids = ids[order]
        tokens = [draw.choice(automaton.allowed_ids(smiles, row.tolist())) for row in ids]
        ids = torch.cat([ids, torch.tensor(tokens)[:, None]], 1)
        if step == 20:
            ids = ids[:, :-7]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_are_copied_and_legal_ones_kept(dtype: torch.dtype) -> None:
    automaton = load("llama-like").automaton
    smiles = ["CO", "CN"]
    for make in (lambda shape: torch.randn(shape), lambda shape: torch.randn(shape[::-1]).t()):
        lp = automaton.logits_processor(smiles)
        prompts = torch.zeros((4, 3), dtype=torch.int64)
        scores = make((4, 5000)).to(dtype)
        before = scores.clone()
        with torch.inference_mode():
            out = lp(prompts, scores)
        # `generate` returns them as the logits of the model.
        assert torch.equal(scores, before)
        for row in range(4):
            legal = automaton.allowed_ids(smiles[row // 2])
            assert torch.isfinite(out[row]).nonzero()[:, 0].tolist() == legal
            assert torch.equal(out[row, legal], before[row, legal])


def test_what_other_processors_forbade_leaves_a_row_that_can_be_drawn_from() -> None:
    automaton = load("qwen-like").automaton
    scores = automaton.logits_processor(["CO"])(
        torch.zeros((1, 1), dtype=torch.int64), torch.full((1, 2000), -torch.inf)
    )
    assert torch.isfinite(scores[0]).nonzero()[:, 0].tolist() == automaton.allowed_ids("CO")


def test_scores_that_are_no_numbers_are_refused() -> None:
    lp = load("qwen-like").automaton.logits_processor(["CO"])
    with pytest.raises(moldrift.DriftError, match="no numbers"):
        lp(torch.zeros((1, 1), dtype=torch.int64), torch.full((1, 2000), torch.nan))


def test_a_prompt_that_ends_in_the_tag_is_refused() -> None:
    ids = load("qwen-like").automaton.source.tokenizer.prompt_ids("[SMILES]CO[/SMILES][CONFORMER]")
    scores = torch.zeros((1, 2000))
    with pytest.raises(moldrift.DriftError, match="opened=True"):
        load("qwen-like").automaton.logits_processor(["CO"])(torch.tensor([ids]), scores)
    opened = moldrift.Automaton("qwen-like", opened=True)
    opened.logits_processor(["CO"])(torch.tensor([ids]), scores)


def test_finished_rows_are_forced_to_end() -> None:
    model = load("qwen-like")
    automaton = model.automaton
    [ids] = model.generate(["C"], logits_processor=[automaton.logits_processor(["C"])])
    lp = automaton.logits_processor(["C"])
    for end in range(len(ids) + 3):
        row = ([*ids, 0, 0, 0])[:end]
        scores = lp(torch.tensor([[1, *row]]), torch.zeros((1, 2000)))
    assert torch.isfinite(scores[0]).nonzero()[:, 0].tolist() == [automaton.eos_token_id]


def test_padding_does_not_matter() -> None:
    model, smiles = load("qwen-like"), molecules(64)[0]
    prompts = model.prompts([smiles])
    padded = {
        "input_ids": torch.nn.functional.pad(
            prompts["input_ids"], (8, 0), value=model.tokenizer.pad_token_id
        ),
        "attention_mask": torch.nn.functional.pad(prompts["attention_mask"], (8, 0)),
    }
    lp = model.automaton.logits_processor([smiles])
    out = model.model.generate(**padded, logits_processor=[lp], do_sample=False, max_new_tokens=1000)
    assert model.cut(out[0, padded["input_ids"].shape[1] :].tolist()) == texts("qwen-like", False)[0]


def test_rows_tell_where_legal_ids_lie() -> None:
    automaton = load("llama-like").automaton
    rows = automaton.logits_processor(["CO", "CN"]).rows
    rows.begin(2)
    rows.step(np.array([automaton.constraint(one).forced_run([]) for one in ("CO", "CN")], dtype=np.int64))
    kept, listing, blocked = rows.places(5000)
    prefix = automaton.constraint("CO").forced_run([])
    legal = automaton.allowed_ids("CO", prefix)
    assert listing is None
    assert not len(blocked)
    assert kept[: len(legal)].tolist() == legal
    union, places = rows.union(5000)
    assert union.tolist() == legal
    assert len(places) == len(kept)
    ids, counts = rows.listed(5000)
    assert ids.shape == (2, len(legal))
    assert counts.tolist() == [len(legal)] * 2
