"""Molecules, models and texts that several tests need."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import moldrift

REPOSITORY = Path(__file__).resolve().parents[2]

#: Reference checkpoints of the repository.
MODELS = ("qwen-like", "llama-like")


def model_folder(name: str) -> str:
    """The folder of a reference checkpoint."""
    return str(REPOSITORY / "eval" / name)


@cache
def molecules(count: int) -> tuple[str, ...]:
    """The first so many of the 64 smallest molecules of the embedded corpus, in its order."""
    atoms: dict[str, int] = {}
    with gzip.open(REPOSITORY / "corpora" / "default.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            atoms.setdefault(record["canonical_smiles"], record["embedded_smiles"].count("<"))
    smallest = set(sorted(atoms, key=lambda smiles: atoms[smiles])[:64])
    return tuple(smiles for smiles in atoms if smiles in smallest)[:count]


class Model:
    """A reference checkpoint in transformers, in f32 on the CPU, with its tokenizer and automaton."""

    def __init__(self, name: str) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        # More threads than that only wait for one another in models this small.
        torch.set_num_threads(1)
        folder = model_folder(name)
        self.automaton = moldrift.Automaton(folder)
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def prompts(self, smiles: Sequence[str]) -> dict[str, Any]:
        """Prompts ``[molecules, longest]``, padded on the left."""
        texts = [f"[SMILES]{one}[/SMILES]" for one in smiles]
        encoded = self.tokenizer(texts, return_tensors="pt", padding=True)
        return {name: encoded[name] for name in ("input_ids", "attention_mask")}

    def generate(self, smiles: Sequence[str], **options: Any) -> list[list[int]]:
        """The answers' ids, up to the end of text if it was written."""
        options = {"do_sample": False, "max_new_tokens": 1000, **options}
        prompts = self.prompts(smiles)
        out = self.model.generate(**prompts, **options)
        return [self.cut(row) for row in out[:, prompts["input_ids"].shape[1] :].tolist()]

    def cut(self, row: list[int]) -> list[int]:
        """A text without padding behind its end."""
        eos = self.automaton.eos_token_id
        return row[: row.index(eos) + 1] if eos in row else row

    def check(self, smiles: str, ids: list[int]) -> None:
        """Asserts that a text is legal, ends, and is written in the tokens that its own tokenizer makes of
        it."""
        assert self.automaton.constraint(smiles).is_over(ids), (smiles, self.tokenizer.decode(ids))
        text = self.tokenizer.decode(ids[:-1])
        prompt = f"[SMILES]{smiles}[/SMILES]"
        begin = self.tokenizer(prompt)["input_ids"]
        assert self.tokenizer(prompt + text)["input_ids"] == begin + ids[:-1], text
        found = moldrift_skeleton(text)
        assert found == self.automaton.skeleton(smiles), text


def moldrift_skeleton(text: str) -> str:
    """A text with its blocks emptied, without its tags; blocks must be three numbers of four decimals."""
    import re

    inside = text.removeprefix("[CONFORMER]").removesuffix("[/CONFORMER]")
    assert len(inside) == len(text) - len("[CONFORMER][/CONFORMER]"), text
    number = r"-?(?:0|[1-9]\d?)\.\d{4}"
    return re.sub(f"<{number},{number},{number}>", "<>", inside)


def batches(smiles: Sequence[str], size: int) -> Iterator[tuple[int, Sequence[str]]]:
    """Parts of so many molecules, each with the number of its first."""
    for first in range(0, len(smiles), size):
        yield first, smiles[first : first + size]
