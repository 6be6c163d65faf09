"""Walks an automaton's tables beside engines that follow its grammar. Knows neither moldrift nor drift's readers.

The tables are those of ``drift export-grammar --format json``; docs/grammars.md describes them.
"""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import llguidance
import llguidance.hf
import llguidance.torch
import numpy as np
import tokenizers
import torch
import xgrammar
from transformers import PreTrainedTokenizerFast

REPOSITORY = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("DRIFT_SHARED", REPOSITORY.parent / "shared"))

#: Where a text stands: the entry of ``order`` and the place in it; the place behind the end is ``OVER``.
Place = tuple[int, int]
OVER = -3


@dataclass
class Here:
    """What is legal at a place: ids, where each leads, and the ids as a bit mask, int32 ``[ceil(vocab / 32)]``."""

    ids: list[int]
    targets: list[Place]
    mask: np.ndarray


@dataclass
class Tables:
    """The tables of one molecule; what is legal is computed once for each place."""

    table: dict[str, Any]
    vocab: int
    known: dict[tuple[int, int, int], Here] = field(default_factory=dict)

    def start(self) -> Place:
        return 0, self._segment(0)["roots"][0]

    def _segment(self, at: int) -> dict[str, Any]:
        segment: dict[str, Any] = self.table["segments"][self.table["order"][at]]
        return segment

    @staticmethod
    def _row(edges: dict[str, Any], row: int) -> Iterator[tuple[int, int]]:
        begin, end = edges["offsets"][row : row + 2]
        return zip(edges["ids"][begin:end], edges["targets"][begin:end], strict=True)

    def _edges(self, at: int, place: int) -> dict[int, tuple[int, int]]:
        """Legal ids, each with how many entries further it leads and the place there."""
        block, states = self.table["block"], len(self.table["block"]["exits"])
        if place == OVER:
            return {self.table["eos"]: (0, OVER)}
        if place >= states:
            return {token: (0, to) for token, to in self._row(self._segment(at), place - states)}
        edges = {}
        for token, to in self._row(block, place):
            edges[token] = (0, to) if to >= 0 else (1, self._segment(at + 1)["roots"][-1 - to])
        mode = block["exits"][place]
        if mode >= 0:
            behind = self._segment(at + 1)
            begins = {token: (1, to) for token, to in self._row(behind, behind["roots"][mode] - states)}
            assert not begins.keys() & edges.keys(), "an id is legal twice"
            edges |= begins
        return edges

    def here(self, at: int, place: int) -> Here:
        """What is legal at a place."""
        order = self.table["order"]
        key = (order[at], place, order[at + 1] if at + 1 < len(order) else -1)
        if key not in self.known:
            edges = self._edges(at, place)
            self.known[key] = Here(list(edges), list(edges.values()), packed(list(edges), self.vocab))
        return self.known[key]


def packed(ids: list[int], vocab: int) -> np.ndarray:
    """Ids as a bit mask, int32 ``[ceil(vocab / 32)]``."""
    bits = np.zeros((vocab + 31) // 32 * 32, dtype=np.uint8)
    bits[ids] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


class Matcher(Protocol):
    """One text under a grammar."""

    def fill(self) -> np.ndarray:
        """The mask of what may come next, int32 ``[ceil(vocab / 32)]``."""

    def accept(self, token: int) -> bool:
        """Takes a token; whether it was legal."""


class Engine(Protocol):
    """An engine for one tokenizer."""

    name: str
    format: str

    def matcher(self, grammar: str) -> Matcher:
        """Compiles a grammar and stands at its beginning."""


# What engines make of a vocabulary takes seconds where it is large, and is the same for every grammar, so the latest is kept.
@lru_cache(maxsize=1)
def guidance_tokenizer(tokenizer: PreTrainedTokenizerFast, vocab: int) -> llguidance.LLTokenizer:
    """A tokenizer as llguidance reads it."""
    return llguidance.hf.from_tokenizer(tokenizer, vocab)


@lru_cache(maxsize=1)
def xgrammar_tokenizer(tokenizer: PreTrainedTokenizerFast, vocab: int) -> xgrammar.TokenizerInfo:
    """A tokenizer as XGrammar reads it."""
    return xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocab)


class LlGuidance:
    """llguidance, as vLLM (``guidance``) and SGLang (``llguidance``) call it."""

    name, format = "llguidance", "lark"

    def __init__(self, tokenizer: PreTrainedTokenizerFast, vocab: int) -> None:
        self.tokenizer = guidance_tokenizer(tokenizer, vocab)
        self.mask = llguidance.torch.allocate_token_bitmask(1, vocab)

    def matcher(self, grammar: str) -> Matcher:
        matcher = llguidance.LLMatcher(
            self.tokenizer, llguidance.grammar_from("grammar", grammar), log_level=1
        )
        assert not matcher.get_error(), matcher.get_error()[:500]
        return _LlMatcher(matcher, self.mask)


@dataclass
class _LlMatcher:
    matcher: llguidance.LLMatcher
    mask: torch.Tensor

    def fill(self) -> np.ndarray:
        llguidance.torch.fill_next_token_bitmask(self.matcher, self.mask, 0)
        return self.mask.numpy()[0]

    def accept(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token))


class XGrammar:
    """XGrammar with its cache, as vLLM and SGLang (``xgrammar``) call it. Since 0.2.6 it reads Lark as well."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, vocab: int, format: str = "ebnf") -> None:
        self.name, self.format = f"xgrammar, {format}", format
        info = xgrammar_tokenizer(tokenizer, vocab)
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=True)
        self.mask = xgrammar.allocate_token_bitmask(1, vocab)

    def matcher(self, grammar: str) -> Matcher:
        compile = self.compiler.compile_lark if self.format == "lark" else self.compiler.compile_grammar
        return _XMatcher(xgrammar.GrammarMatcher(compile(grammar)), self.mask)


@dataclass
class _XMatcher:
    matcher: xgrammar.GrammarMatcher
    mask: torch.Tensor

    def fill(self) -> np.ndarray:
        self.matcher.fill_next_token_bitmask(self.mask, 0)
        return self.mask.numpy()[0]

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


@lru_cache(maxsize=1)
def load(path: Path, eos: int) -> tuple[PreTrainedTokenizerFast, int]:
    """A tokenizer as engines want it, and the size of its vocabulary."""
    data = path.read_bytes()
    inner = tokenizers.Tokenizer.from_str((gzip.decompress(data) if path.suffix == ".gz" else data).decode())
    wrapped = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=inner.id_to_token(eos))
    return wrapped, inner.get_vocab_size()


@dataclass
class Walked:
    """What a walk saw."""

    masks: int = 0
    different: list[str] = field(default_factory=list)
    build: list[float] = field(default_factory=list)
    fill: list[float] = field(default_factory=list)


def walk(engine: Engine, line: dict[str, Any], tables: Tables, seed: int, seen: Walked) -> list[int]:
    """Writes one random text, comparing the masks before every token; returns its ids, without the end."""
    rng = random.Random(f"{seed} {line['smiles']}")
    began = time.perf_counter()
    matcher = engine.matcher(line[engine.format])
    seen.build.append(time.perf_counter() - began)
    at, place = tables.start()
    ids: list[int] = []
    while True:
        here = tables.here(at, place)
        began = time.perf_counter()
        mask = matcher.fill()
        seen.fill.append(time.perf_counter() - began)
        seen.masks += 1
        if not np.array_equal(mask, here.mask):
            found = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            seen.different.append(f"{line['smiles']} behind {ids[-8:]}: {here.ids[:8]}, here {found[:8]}")
            return ids
        if place == OVER:
            return ids
        choice = rng.randrange(len(here.ids))
        if not matcher.accept(here.ids[choice]):
            seen.different.append(f"{line['smiles']} behind {ids[-8:]}: {here.ids[choice]} is refused")
            return ids
        ids.append(here.ids[choice])
        further, place = here.targets[choice]
        at += further


def tokenizer_files(*names: str) -> dict[str, Path]:
    """The ``tokenizer.json`` of tokenizers by name: of the repository, or else of the shared folder, perhaps zipped."""
    own = {name: REPOSITORY / "tokenizers" / name / "tokenizer.json" for name in names}
    shared = {name: SHARED / "tokenizers" / name / "tokenizer.json" for name in names}
    zipped = {name: path.with_name("tokenizer.json.gz") for name, path in shared.items()}
    return {
        name: own[name] if own[name].is_file() else zipped[name] if zipped[name].is_file() else shared[name]
        for name in names
    }
