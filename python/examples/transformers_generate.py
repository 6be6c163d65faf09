"""Conformers with transformers: a logits processor, or `constrained_generate`, which takes fewer forward passes.

python python/examples/transformers_generate.py --model eval/qwen-like 'CC=O' 'c1ccccc1O' -n 2 > texts.jsonl
drift audit texts.jsonl
"""

from __future__ import annotations

import argparse
import json

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import moldrift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("smiles", nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("--dialect", default="fixed")
    parser.add_argument("-n", type=int, default=1, help="texts a molecule")
    parser.add_argument("--greedy", action="store_true")
    parser.add_argument("--constrained-generate", action="store_true")
    parser.add_argument("--max-new-tokens", type=int, default=2000)
    options = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(options.model).eval()
    automaton = moldrift.Automaton(options.model, dialect=options.dialect)
    processor = automaton.logits_processor(options.smiles)
    prompts = [f"[SMILES]{one}[/SMILES]" for one in options.smiles]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
    inputs = {name: inputs[name].to(model.device) for name in ("input_ids", "attention_mask")}
    if options.constrained_generate:
        how = {"custom_generate": moldrift.constrained_generate, "constraint": processor}
    else:
        how = {"logits_processor": [processor]}
    with torch.inference_mode():
        ids = model.generate(
            **inputs,
            **how,
            do_sample=not options.greedy,
            num_return_sequences=options.n,
            max_new_tokens=options.max_new_tokens,
        )
    for row, answer in enumerate(ids[:, inputs["input_ids"].shape[1] :].tolist()):
        text = tokenizer.decode(answer, skip_special_tokens=False)
        print(
            json.dumps(
                {"smiles": options.smiles[row // options.n], "generation": row % options.n, "text": text}
            )
        )


if __name__ == "__main__":
    main()
