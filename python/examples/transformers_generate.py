"""Conformers with transformers: a logits processor, or `constrained_generate`, which takes fewer forward passes; or neither.

python python/examples/transformers_generate.py --model eval/qwen-like 'CC=O' 'c1ccccc1O' -n 2 > texts.jsonl
python python/examples/transformers_generate.py --model eval/qwen-like --smiles molecules.smi --plain -o plain.jsonl
drift audit texts.jsonl
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import moldrift


def answers(smiles: list[str], options: argparse.Namespace) -> list[str]:
    """Texts of molecules, n for each, one molecule after the other."""
    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(options.model).eval()
    prompts = [f"[SMILES]{one}[/SMILES]" for one in smiles]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True)
    inputs = {name: inputs[name].to(model.device) for name in ("input_ids", "attention_mask")}
    how: dict[str, Any] = {}
    if not options.plain:
        processor = moldrift.Automaton(options.model, dialect=options.dialect).logits_processor(smiles)
        how = {"logits_processor": [processor]}
        if options.constrained_generate:
            how = {"custom_generate": moldrift.constrained_generate, "constraint": processor}
    torch.manual_seed(options.seed)
    with torch.inference_mode():
        ids = model.generate(
            **inputs,
            **how,
            do_sample=not options.greedy,
            temperature=None if options.greedy else options.temperature,
            num_return_sequences=options.n,
            max_new_tokens=options.max_new_tokens,
        )
    return tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("molecules", nargs="*", metavar="SMILES")
    parser.add_argument("--smiles", type=Path, help="a file with a SMILES a line")
    parser.add_argument("--model", required=True)
    parser.add_argument("--dialect", help="how the model writes numbers; by default as its recipe says")
    parser.add_argument("-n", type=int, default=1, help="texts a molecule")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--greedy", action="store_true")
    parser.add_argument("--plain", action="store_true", help="the model alone, to compare")
    parser.add_argument("--constrained-generate", action="store_true")
    parser.add_argument("--max-new-tokens", type=int, default=2000)
    parser.add_argument("-o", "--output", type=argparse.FileType("w", encoding="utf-8"), default=sys.stdout)
    options = parser.parse_args()

    smiles = options.molecules
    if options.smiles:
        smiles = [line.split()[0] for line in options.smiles.read_text().splitlines() if line.strip()]
    lp = "none" if options.plain else "automaton"
    for at, text in enumerate(answers(smiles, options)):
        row = {"smiles": smiles[at // options.n], "generation": at % options.n, "lp": lp, "text": text}
        options.output.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
