"""The users' processors beside the automaton, on one model, in one table.

    python python/benches/users.py [--model eval/qwen-like] [--molecules 32] [--batch 32] [--theirs PATH]

``--theirs`` is the ``src`` folder of 3DMolGen on its branch ``logit_processor_and_inference_v2``; it needs
transformers 4. Greedy texts of the same molecules; ``moldrift.audit`` judges them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from processor import molecules
from transformers import AutoModelForCausalLM, AutoTokenizer

import moldrift

REPOSITORY = Path(__file__).resolve().parents[2]

#: Makes the options of a call of generate, and says afterwards how many passes there were.
Way = Callable[[list[str], Any], "tuple[dict[str, Any], Callable[[], int] | None]"]


def with_processor(make: Callable[[list[str]], Any]) -> Way:
    """A processor of ours."""

    def way(smiles: list[str], _: Any) -> tuple[dict[str, Any], Callable[[], int] | None]:
        lp = make(smiles)
        return {"logits_processor": [lp]}, lambda: lp.forward_passes

    return way


def constrained(automaton: moldrift.Automaton) -> Way:
    """The automaton with forced tokens read together."""

    def way(smiles: list[str], _: Any) -> tuple[dict[str, Any], Callable[[], int] | None]:
        lp = automaton.logits_processor(smiles)
        return {"custom_generate": moldrift.constrained_generate, "constraint": lp}, lambda: lp.forward_passes

    return way


def theirs(folder: Path, tokenizer: Any, eos: int) -> Way:
    """3DMolGen's own processor, from a folder of its code."""
    sys.path.insert(0, str(folder))
    from molgen3D.evaluation import qwen_logit_processor as code

    def way(smiles: list[str], prompts: Any) -> tuple[dict[str, Any], Callable[[], int] | None]:
        templates = code.build_templates_for_batch(smiles, tokenizer)
        lengths = prompts["attention_mask"].sum(1).tolist()
        lp = code.QwenAllowlistLogitsProcessor(templates, lengths, tokenizer=tokenizer, eos_token_id=eos)
        return {"logits_processor": [lp]}, None

    return way


def run(
    model: Any, tokenizer: Any, eos: int, smiles: list[str], options: argparse.Namespace, way: Way | None
) -> dict[str, Any]:
    """Texts, seconds of a step, and passes of the model."""
    texts, passes, seconds = [], 0, 0.0
    for first in range(0, len(smiles), options.batch):
        part = smiles[first : first + options.batch]
        encoded = tokenizer([f"[SMILES]{one}[/SMILES]" for one in part], return_tensors="pt", padding=True)
        prompts = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        begin = time.perf_counter()
        extra, count = way(part, prompts) if way else ({}, None)
        out = model.generate(**prompts, **extra, do_sample=False, max_new_tokens=options.max_tokens)
        seconds += time.perf_counter() - begin
        written = out[:, prompts["input_ids"].shape[1] :]
        passes += count() if count else written.shape[1]
        for row in written.tolist():
            texts.append(tokenizer.decode(row[: row.index(eos)] if eos in row else row))
    return {"texts": texts, "seconds": seconds, "passes": passes}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(REPOSITORY / "eval" / "qwen-like"))
    parser.add_argument("--molecules", type=int, default=32)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=1200)
    parser.add_argument("--theirs", type=Path)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    automaton = moldrift.Automaton(options.model)
    ways: dict[str, Way | None] = {"none": None}
    for kind in ("generic", "qwen38", "qwen39", "targeted", "allowlist", "truncating"):
        templates = moldrift.PositionTemplates(options.model, kind, dialect="fixed")
        ways[f"{kind} {templates.placeholder}"] = with_processor(templates.logits_processor)
    if options.theirs:
        ways["their code, 4.3"] = theirs(options.theirs, tokenizer, automaton.eos_token_id)
    ways["automaton"] = with_processor(automaton.logits_processor)
    ways["automaton, constrained_generate"] = constrained(automaton)
    smiles = molecules(options.molecules)
    print("| processor | pass | blocks with junk | truncated | passes of the model | ms a pass | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, way in ways.items():
        done = run(model, tokenizer, automaton.eos_token_id, smiles, options, way)
        records = [{"smiles": one, "text": text} for one, text in zip(smiles, done["texts"], strict=True)]
        total = moldrift.audit(records, dialect="fixed").total
        print(
            f"| {name} | {total['passed']} of {total['samples']} | {total['junk_blocks_strict']} of "
            f"{total['blocks']} | {total['truncated_blocks']} | {done['passes']} "
            f"| {done['seconds'] / done['passes'] * 1e3:.1f} | {done['seconds']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
