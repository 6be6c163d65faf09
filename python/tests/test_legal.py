"""`Automaton.legal`: what was legal at every token of completions, beside `allowed_ids`, and what it says of bad ones."""

from __future__ import annotations

import itertools
import threading
import time
from functools import cache

import numpy as np
import pytest
from generation import molecules
from test_automaton import TOKENIZERS, random_text
from test_bad_input import line

import moldrift


@cache
def automaton(name: str = "qwen-like") -> moldrift.Automaton:
    return moldrift.Automaton(name, eos_token_id=0)


def rows(pair: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    """The legal ids of each token."""
    indptr, indices = pair
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)
    assert indptr[0] == 0 and indptr[-1] == len(indices)
    return [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_rows_are_those_of_allowed_ids(name: str) -> None:
    one = automaton(name)
    for seed, smiles in enumerate(molecules(2)):
        ids = [*random_text(one, smiles, seed), 0]
        assert rows(one.legal(smiles, ids)) == [one.allowed_ids(smiles, ids[:at]) for at in range(len(ids))]


@pytest.mark.parametrize(
    "options",
    [
        {"conformers": 3},
        {"opened": True},
        {"dialect": "stripped"},
        {"encoding": "binned-v2:-13,13,0.104"},
        {"encoding": "fsq:64"},
    ],
)
def test_rows_of_other_answers(options: dict[str, object]) -> None:
    one = moldrift.Automaton("llama-like", eos_token_id=0, **options)
    ids = [*random_text(one, "CO", 3), 0]
    assert rows(one.legal("CO", ids)) == [one.allowed_ids("CO", ids[:at]) for at in range(len(ids))]


def test_a_batch_is_its_completions_alone() -> None:
    smiles = [*molecules(3), molecules(1)[0]]
    texts = [[*random_text(automaton(), one, seed), 0] for seed, one in enumerate(smiles)]
    found = automaton().legal(smiles, texts)
    assert isinstance(found, list)
    assert [rows(one) for one in found] == [
        rows(automaton().legal(*one)) for one in zip(smiles, texts, strict=True)
    ]
    assert automaton().legal([], []) == []


def test_integers_of_any_kind() -> None:
    ids = random_text(automaton(), "CO", 1)
    expected = rows(automaton().legal("CO", ids))
    for kind in (tuple(ids), np.array(ids, np.int32), np.array(ids, np.uint16), np.array([*ids, 7])[:-1]):
        assert rows(automaton().legal("CO", kind)) == expected
    torch = pytest.importorskip("torch")
    assert rows(automaton().legal(["CO"], torch.tensor([ids]))[0]) == expected


def test_a_completion_cut_off_and_an_empty_one() -> None:
    ids = random_text(automaton(), "CCO", 2)
    whole = rows(automaton().legal("CCO", ids))
    for length in (0, 1, 17, len(ids) - 1):
        assert rows(automaton().legal("CCO", ids[:length])) == whole[:length]
    assert [len(one) for one in automaton().legal("CCO", [])] == [1, 0]


def test_padding_behind_the_end() -> None:
    """Ends of text and padding, and nothing else; no choice is listed."""
    padded = moldrift.Automaton("llama-like", eos_token_id=[0, 5])
    ids = random_text(padded, "CO", 1)
    assert rows(padded.legal("CO", [*ids, 0, 5, 0]))[len(ids) :] == [[0], [], []]
    with pytest.raises(moldrift.ForbiddenToken, match="the text has ended, and only padding may follow"):
        padded.legal("CO", [*ids, 0, ids[0]])


def test_ids_that_are_not_legal() -> None:
    ids = random_text(automaton(), "CCO", 1)
    wrong = list(ids)
    wrong[9] = automaton().source.tokenizer.id_of("C")
    with pytest.raises(moldrift.ForbiddenToken) as error:
        automaton().legal(["CCO", "CCO"], [ids, wrong])
    said = line(error)
    assert f"completion 1, token 9 behind the prompt: {wrong[9]} `C` is not legal there; allowed are " in said
    assert "tokenizer qwen-like writes them in encoding fixed" in said
    for bad, expected in (([10**6], "1000000 is not a token"), ([-1], "-1 is not a token"), ([0], "token 0")):
        with pytest.raises(moldrift.ForbiddenToken, match=expected):
            automaton().legal("CCO", bad)
    # The answer to another molecule, and the prompt left in.
    prompt = automaton().source.tokenizer.prompt_ids("[SMILES]CCO[/SMILES]")
    for bad_smiles, bad in (("CCN", ids), ("CCO", [*prompt, *ids])):
        with pytest.raises(moldrift.ForbiddenToken, match="is not legal there"):
            automaton().legal(bad_smiles, bad)


def test_another_tokenizer_or_encoding() -> None:
    text = "[CONFORMER][C]<0.5000,-1.2500,3.0000>[O]<1.0000,2.0000,-3.0000>[/CONFORMER]"
    ids = automaton("llama-like").source.tokenizer.answer_ids(text)
    with pytest.raises(moldrift.ForbiddenToken, match="qwen-like") as error:
        automaton().legal("CO", ids)
    line(error)
    three = moldrift.Automaton("llama-like", "fixed-3", eos_token_id=0)
    with pytest.raises(moldrift.ForbiddenToken, match="encoding fixed-3") as error:
        three.legal("CO", ids)
    line(error)
    # The same characters in tokens that the tokenizer does not write.
    qwen = automaton().source.tokenizer
    ids = qwen.answer_ids(text)
    merged = qwen.id_of(",-")
    at = ids.index(merged)
    with pytest.raises(moldrift.ForbiddenToken, match=f"token {at + 1} behind the prompt"):
        automaton().legal("CO", [*ids[:at], qwen.id_of(","), qwen.id_of("-"), *ids[at + 1 :]])


def test_what_is_no_batch() -> None:
    for smiles, ids in (
        (["CO"], [[1], [2]]),
        (["CO", "CN"], [[1]]),
        ("CO", [[1], [2]]),
        ("CO", [1.5]),
        ("CO", ["a"]),
        ("CO", [[1], [2, 3]]),
        (["CO"], [1]),
        ("CO", [2**70]),
    ):
        with pytest.raises(moldrift.DriftError, match="legal: ") as error:
            automaton().legal(smiles, ids)
        line(error)
    with pytest.raises(moldrift.InvalidSmiles):
        automaton().legal(["CO", "C("], [[], []])


def test_other_threads_go_on() -> None:
    """The interpreter's lock is released: another thread counts while a large batch is followed."""
    ids = random_text(automaton(), "CCO", 1)
    batch = [ids] * 5000
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0)

    def counted_while_followed() -> int:
        before = counted
        processor.legal(["CCO"] * len(batch), arrays, [0])
        return counted - before

    thread = threading.Thread(target=count)
    arrays = [np.array(one, np.int64) for one in batch]
    processor = automaton()._processor
    thread.start()
    try:
        # A busy machine may give the other thread no time once, and never all of the times.
        assert any(counted_while_followed() > 10 for _ in range(50))
    finally:
        over.set()
        thread.join()
