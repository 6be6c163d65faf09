"""Grammars of skeletons in llguidance and XGrammar: their masks are the automaton's, in every state that random texts
reach."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

moldrift = pytest.importorskip("moldrift")
pytest.importorskip("llguidance")
pytest.importorskip("xgrammar")
pytest.importorskip("transformers")

from walking import Engine, LlGuidance, XGrammar, load, packed, tokenizer_files  # noqa: E402

TEXTS = int(os.environ.get("DRIFT_TEXTS", "4"))
TOKENIZERS = tokenizer_files("qwen3", "llama-3.2", "mistral-v1", "qwen-like", "llama-like")
PROMPTS: dict[str, list[dict[str, Any]]] = {
    "crystal-text": [{"species": ["Na", "Cl"]}, {"formula": "NaCl"}, {"formula": "KNO3"}],
    "xyz": [{"smiles": "CCO"}],
    "3dsmiles-plain": [{"smiles": "C[C@H](N)C=O"}],
    "enriched-smiles": [{"smiles": "C[C@H](N)C(=O)[O-]"}],
    "enriched-smiles:binned-v2:-13,13,0.104": [{"smiles": "c1cc[nH]c1"}],
    "smiles-then-xyz": [{"smiles": "c1cc[nH]c1"}],
}


def compare(engine: Engine, constraint: Any, grammar: str, vocab: int, eos: int, seed: int) -> int:
    """Writes a random text, and compares the masks before each token; returns how many."""
    matcher, draws = engine.matcher(grammar), random.Random(seed)
    rows = moldrift._lib.Rows([constraint], [0], [eos])
    rows.begin(1)
    ids: list[int] = []
    while not ids or ids[-1] != eos:
        if ids:
            rows.step(np.array([ids]))
        legal, counts = rows.listed(10**6)
        allowed = legal[0, : counts[0]].tolist()
        mask = matcher.fill()
        if not np.array_equal(mask, packed(allowed, vocab)):
            found = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
            raise AssertionError(f"{engine.name} behind {ids[-8:]}: {allowed[:8]}, here {found[:8]}")
        ids.append(draws.choice(allowed))
        assert matcher.accept(ids[-1])
    return len(ids)


def compare_all(engines: list[Engine], constraint: Any, vocab: int, eos: int) -> None:
    """Compares some random texts in each engine."""
    for engine in engines:
        grammar = constraint.grammar(engine.format)
        masks = [compare(engine, constraint, grammar, vocab, eos, seed) for seed in range(TEXTS)]
        assert min(masks) > 10


@pytest.mark.parametrize("skeleton", PROMPTS)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_masks_are_the_automatons(name: str, skeleton: str) -> None:
    path = TOKENIZERS[name]
    if not path.is_file():
        pytest.skip(f"{path.parent.name} is not here")
    automaton = moldrift.SkeletonAutomaton(path, skeleton)
    eos = automaton.eos_token_id
    tokenizer, vocab = load(path, eos)
    has_bytes = "<0x43>" in tokenizer.get_vocab()
    engines: list[Engine] = [XGrammar(tokenizer, vocab)]
    engines += [] if has_bytes else [LlGuidance(tokenizer, vocab)]
    for prompt in PROMPTS[skeleton]:
        constraint = automaton.constraint(prompt)
        if has_bytes:
            with pytest.raises(moldrift.DriftError, match="give ebnf"):
                constraint.grammar("lark")
        compare_all(engines, constraint, vocab, eos)


@pytest.mark.parametrize("name", ["qwen-like", "llama-like"])
@pytest.mark.parametrize("begun", ["<CIF>", "<CIF>P1\n4"])
def test_grammars_begin_behind_the_prompt(name: str, begun: str) -> None:
    """A prompt may end within a run of the text: `>P` is one token, so the rest of the run is what a grammar begins with."""
    automaton = moldrift.SkeletonAutomaton(name, "simple-cif", begun=begun)
    eos = automaton.eos_token_id
    tokenizer, vocab = load(TOKENIZERS[name], eos)
    constraint = automaton.constraint({"formula": "NaCl"})
    compare_all([XGrammar(tokenizer, vocab), LlGuidance(tokenizer, vocab)], constraint, vocab, eos)


@pytest.mark.parametrize("name", ["qwen-like-fused", "llama-like-separate"])
def test_slots_may_be_cut_out_whole(name: str) -> None:
    """Extended tokenizers cut blocks below 15 Å out of the text, and others not."""
    [path] = (Path(__file__).parents[3] / "tokenizers" / name).glob("tokenizer.json*")
    automaton = moldrift.SkeletonAutomaton(name, "enriched-smiles")
    eos = automaton.eos_token_id
    tokenizer, vocab = load(path, eos)
    constraint = automaton.constraint({"smiles": "C[C@H](N)C(=O)[O-]"})
    compare_all([XGrammar(tokenizer, vocab), LlGuidance(tokenizer, vocab)], constraint, vocab, eos)


def test_what_a_grammar_cannot_express_is_refused() -> None:
    for skeleton, prompt, problem in [
        ("simple-cif", {"formula": "NaCl"}, "before a marker"),
        ("crystal-text", {"formula": "Ba4Na4K4Ca4(PO4)4O20"}, "more than 50000 places"),
        ("crystal-text", {"species": ["Na"] * 1001}, "nested too deep"),
    ]:
        with pytest.raises(moldrift.DriftError, match=problem):
            moldrift.SkeletonAutomaton("qwen-like", skeleton).grammar(prompt)
