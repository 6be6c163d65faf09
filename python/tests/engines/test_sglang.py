"""SGLang's own grammar backends accept exported grammars, and their masks are the automaton's.

SGLang itself needs a GPU; its backends are Python, and are handed what `sampling_params={"ebnf": …}` holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

moldrift = pytest.importorskip("moldrift")
llguidance_backend = pytest.importorskip("sglang.srt.constrained.llguidance_backend")
xgrammar_backend = pytest.importorskip("sglang.srt.constrained.xgrammar_backend")

from test_masks import MOLECULES, TOKENIZERS, end_of_text, exported  # noqa: E402
from walking import Tables, Walked, load, walk  # noqa: E402


@dataclass
class Backend:
    """One of SGLang's backends."""

    name: str
    format: str
    backend: Any
    vocab: int

    def matcher(self, grammar: str) -> Matcher:
        return Matcher(self.backend.dispatch_ebnf(grammar), self.vocab)


@dataclass
class Matcher:
    """A request's grammar, as the scheduler uses it."""

    grammar: Any
    vocab: int

    def fill(self) -> np.ndarray:
        mask = self.grammar.allocate_vocab_mask(self.vocab, 1, "cpu")
        self.grammar.fill_vocab_mask(mask, 0)
        return mask.numpy()[0]

    def accept(self, token: int) -> bool:
        self.grammar.accept_token(token)
        return True


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["fixed", "stripped"])
@pytest.mark.parametrize("name", ["qwen-like", "llama-like", "qwen-like-fused", "qwen-like-separate"])
def test_masks_are_the_automatons(name: str, dialect: str) -> None:
    eos = end_of_text(TOKENIZERS[name])
    tokenizer, vocab = load(TOKENIZERS[name], eos)
    automaton = moldrift.Automaton(TOKENIZERS[name], dialect=dialect, eos_token_id=eos)
    backends = [
        Backend("llguidance", "lark", llguidance_backend.GuidanceBackend(tokenizer, n_vocab=vocab), vocab),
        Backend("xgrammar", "ebnf", xgrammar_backend.XGrammarGrammarBackend(tokenizer, vocab, [eos]), vocab),
    ]
    for backend in backends:
        seen = Walked()
        for seed, smiles in enumerate(MOLECULES):
            line = exported(automaton, smiles)
            walk(backend, line, Tables(line["table"], vocab), seed, seen)
        assert not seen.different, f"{backend.name}: {seen.different[:3]}"
        assert seen.masks > 500
