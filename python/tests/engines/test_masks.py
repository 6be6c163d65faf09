"""Exported grammars in llguidance and XGrammar: their masks are the automaton's, in every state that random texts reach.

``DRIFT_TEXTS=1000`` makes it 1,000 texts of each tokenizer and dialect, ``-s`` prints what building and masks take.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

moldrift = pytest.importorskip("moldrift")
pytest.importorskip("llguidance")
pytest.importorskip("xgrammar")
pytest.importorskip("transformers")

from walking import (  # noqa: E402
    SHARED,
    Engine,
    LlGuidance,
    Tables,
    Walked,
    XGrammar,
    load,
    tokenizer_files,
    walk,
)

TEXTS = int(os.environ.get("DRIFT_TEXTS", "6"))
TOKENIZERS = tokenizer_files(
    *("mistral-v1", "chemllama2", "qwen3-custom", "llama-3.2-chem"),
    *("qwen-like", "llama-like", "qwen-like-fused", "qwen-like-separate"),
)
#: Rings, branches, charges, isotopes, stereo, several fragments; in this order, so that rules of one shape follow one another.
MOLECULES = [
    "CCO",
    "c1ccccc1",
    "CC(=O)Oc1ccccc1C(=O)O",
    "O=C([O-])[C@@H]([NH3+])Cc1c[nH]cn1",
    "F/C=C/C#N",
    "[13CH4]",
    "[Na+].[Cl-]",
    "CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5",
    "CS(=O)(=O)N1CCN(c2ncc(Br)cn2)CC1",
]


def molecules() -> list[str]:
    """As many as there are texts: GEOM's test molecules where they are."""
    path = SHARED / "geom/drugs_test_smiles.csv"
    found = list(MOLECULES)
    if path.is_file():
        with path.open() as file:
            found += [row["corrected_smiles"] for row in csv.DictReader(file)]
    return [found[text % len(found)] for text in range(TEXTS)]


def end_of_text(path: Path) -> int:
    """The id of the tokenizer's end of text."""
    import gzip

    data = path.read_bytes()
    added = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["added_tokens"]
    by_text = {token["content"]: token["id"] for token in added}
    return next(by_text[text] for text in ("<|endoftext|>", "<|end_of_text|>", "</s>") if text in by_text)


def vocabulary_has_bytes(tokenizer: Any) -> bool:
    return "<0x43>" in tokenizer.get_vocab()


def exported(automaton: Any, smiles: str) -> dict[str, Any]:
    constraint = automaton.constraint(smiles)
    lines = {format: constraint.grammar(format) for format in ("lark", "ebnf")}
    return {
        "smiles": smiles,
        "skeleton": constraint.skeleton,
        "table": json.loads(constraint.grammar("json")),
        **lines,
    }


def report(name: str, dialect: str, engine: Engine, seen: Walked, size: list[int]) -> None:
    build, fill = 1e3 * np.array(seen.build), 1e6 * np.array(seen.fill)
    print(
        f"\n{name} {dialect} {engine.name}: {len(build)} texts, {seen.masks} masks, {len(seen.different)} different; "
        f"{np.median(size) / 1e3:.1f} KB, build {np.median(build):.1f} ms (99 %: {np.quantile(build, 0.99):.1f}), "
        f"mask {np.median(fill):.1f} µs (99 %: {np.quantile(fill, 0.99):.1f})"
    )


#: Each kind of encoding.
ENCODINGS = ["fixed", "stripped", "binned-v1:-21,21,0.05", "binned-v2:-13,13,0.104", "fsq:512"]


@pytest.mark.parametrize("dialect", ENCODINGS)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_masks_are_the_automatons(name: str, dialect: str) -> None:
    path = TOKENIZERS[name]
    if not path.is_file():
        pytest.skip(f"{path.parent.name} is not here")
    if name.endswith(("-fused", "-separate")) and dialect not in ("fixed", "stripped"):
        pytest.skip(f"{name} was extended for decimals")
    eos = end_of_text(path)
    automaton = moldrift.Automaton(path, encoding=dialect, eos_token_id=eos)
    tokenizer, vocab = load(path, eos)
    lines = [exported(automaton, smiles) for smiles in molecules()]
    engines = [LlGuidance(tokenizer, vocab), XGrammar(tokenizer, vocab)]
    # Of a vocabulary with byte fallback, XGrammar would also allow the bytes of characters in Lark.
    engines += [] if vocabulary_has_bytes(tokenizer) else [XGrammar(tokenizer, vocab, "lark")]
    for engine in engines:
        seen = Walked()
        for text, line in enumerate(lines):
            ids = walk(engine, line, Tables(line["table"], vocab), text, seen)
            # The tables are the automaton's own, at one place of each text.
            if not seen.different and text < 20:
                prefix = ids[: 1 + (text * 37) % len(ids)]
                assert automaton.allowed_ids(line["smiles"], prefix) == after(line, vocab, prefix)
        report(name, dialect, engine, seen, [len(line[engine.format]) for line in lines])
        assert not seen.different, "\n".join(seen.different[:5])


def after(line: dict[str, Any], vocab: int, prefix: list[int]) -> list[int]:
    """What the tables allow behind a prefix."""
    tables = Tables(line["table"], vocab)
    at, place = tables.start()
    for token in prefix:
        here = tables.here(at, place)
        further, place = here.targets[here.ids.index(token)]
        at += further
    return sorted(tables.here(at, place).ids)


def test_masks_of_several_conformers_are_the_automatons() -> None:
    path = TOKENIZERS["qwen-like"]
    eos = end_of_text(path)
    tokenizer, vocab = load(path, eos)
    for form in ({"conformers": 3}, {"opened": True}, {"conformers": 2, "opened": True}):
        automaton = moldrift.Automaton(path, encoding="binned-v2:-13,13,0.104", eos_token_id=eos, **form)
        line = exported(automaton, "F/C=C/C#N")
        for engine in (LlGuidance(tokenizer, vocab), XGrammar(tokenizer, vocab)):
            seen = Walked()
            walk(engine, line, Tables(line["table"], vocab), 0, seen)
            assert seen.masks and not seen.different, (form, seen.different[:5])


def test_a_wrong_grammar_is_seen() -> None:
    path = TOKENIZERS["qwen-like"]
    eos = end_of_text(path)
    tokenizer, vocab = load(path, eos)
    automaton = moldrift.Automaton(path, eos_token_id=eos)
    line = exported(automaton, "CCO")
    line["lark"] = line["lark"].replace("<[48-57]>", "<[48-56]>", 1)
    line["ebnf"] = line["ebnf"].replace("Token(45)", "Token(44)", 1)
    for engine in (LlGuidance(tokenizer, vocab), XGrammar(tokenizer, vocab)):
        seen = Walked()
        walk(engine, line, Tables(line["table"], vocab), 0, seen)
        assert seen.different, engine.name
