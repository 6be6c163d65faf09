"""Exported grammars in vLLM: throughput beside a grammar of text and no grammar, and what the texts are worth.

    python python/benches/vllm_grammars.py --model eval/qwen-like --texts 64

One table, from one run: for each backend its engine is started once, and every row is measured in it, after a warm-up. A text
is *legal* if it is the molecule's with a coordinate in every block, *canonical* if the tokenizer makes the same tokens of
prompt and text. `--json` prints the rows as JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

import moldrift

#: Ethanol to codeine: as many atoms as drug-like molecules have.
MOLECULES = [
    "CCO",
    "c1ccccc1O",
    "CC(=O)Oc1ccccc1C(=O)O",
    "CC(C)Cc1ccc(C(C)C(=O)O)cc1",
    "CN1C=NC2=C1C(=O)N(C)C(=O)N2C",
    "O=C([O-])C([NH3+])Cc1c[nH]cn1",
    "COc1ccc2CC3C4C=CC(O)C5Oc1c2C45CCN3C",
    "CS(=O)(=O)N1CCN(c2ncc(Br)cn2)CC1",
]
NUMBER = r"-?\d{1,4}\.\d{4}"


def texts_grammar(skeleton: str, format: str) -> str:
    """A grammar of characters, as one writes it without drift."""
    pieces = f"[CONFORMER]{skeleton}[/CONFORMER]".split("<>")
    quoted = [json.dumps(piece) for piece in pieces]
    if format == "lark":
        body = ' "<" N "," N "," N ">" '.join(quoted)
        return f"start: {body}\nN: /-?[0-9]{{1,4}}\\.[0-9]{{4}}/\n"
    body = ' "<" n "," n "," n ">" '.join(quoted)
    digits = " ".join(["[0-9]"] * 4)
    return f'root ::= {body}\nn ::= "-"? [0-9] [0-9]? "." {digits}\n'


def is_legal(skeleton: str, text: str) -> bool:
    """Whether a text is the molecule's, in the fixed dialect."""
    pattern = re.escape(f"[CONFORMER]{skeleton}[/CONFORMER]").replace("<>", f"<{NUMBER},{NUMBER},{NUMBER}>")
    return re.fullmatch(pattern, text) is not None


def parameters(grammar: str | None, seed: int) -> SamplingParams:
    """How a text is sampled."""
    return SamplingParams(
        max_tokens=1500,
        temperature=1.0,
        seed=seed,
        skip_special_tokens=False,
        spaces_between_special_tokens=False,
        structured_outputs=None if grammar is None else StructuredOutputsParams(grammar=grammar),
    )


def measure(
    llm: LLM, tokenizer: Tokenizer, smiles: list[str], skeletons: list[str], grammars: list[str | None]
) -> dict[str, Any]:
    """Generates a text for each molecule; counts and tokens a second."""
    prompts = [f"[SMILES]{one}[/SMILES]" for one in smiles]
    asked = [parameters(grammar, seed) for seed, grammar in enumerate(grammars)]
    began = time.perf_counter()
    answers = llm.generate(prompts, asked, use_tqdm=False)
    seconds = time.perf_counter() - began
    row = {"texts": len(answers), "legal": 0, "canonical": 0, "tokens": 0, "seconds": seconds}
    for prompt, skeleton, answer in zip(prompts, skeletons, answers, strict=True):
        [output] = answer.outputs
        ids = list(answer.prompt_token_ids or []) + list(output.token_ids)
        again = tokenizer.encode(prompt + output.text, add_special_tokens=False).ids
        row["tokens"] += len(output.token_ids)
        legal = is_legal(skeleton, output.text)
        row["legal"] += legal
        row["canonical"] += legal and again == ids[: len(again)] and len(ids) - len(again) <= 1
    row["tokens_per_second"] = row["tokens"] / seconds
    return row


def rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All rows of the table."""
    automaton = moldrift.Automaton(options.model)
    tokenizer = Tokenizer.from_file(str(Path(options.model) / "tokenizer.json"))
    smiles = [MOLECULES[text % len(MOLECULES)] for text in range(options.texts)]
    skeletons = [automaton.skeleton(one) for one in smiles]
    measured = []
    for backend, format in (("guidance", "lark"), ("xgrammar", "ebnf")):
        llm = LLM(
            options.model,
            dtype="float32",
            enforce_eager=True,
            max_model_len=2048,
            max_num_seqs=64,
            structured_outputs_config={"backend": backend},
        )
        llm.generate(
            ["[SMILES]C[/SMILES]"] * 8, parameters(automaton.grammar("C", format=format), 0), use_tqdm=False
        )
        kinds: dict[str, list[str | None]] = {
            "none": [None] * len(smiles),
            "text grammar": [texts_grammar(one, format) for one in skeletons],
            "exported grammar": [automaton.grammar(one, format=format) for one in smiles],
        }
        for name, grammars in kinds.items():
            row = measure(llm, tokenizer, smiles, skeletons, grammars)
            measured.append({"backend": backend, "format": format, "constraint": name, **row})
        del llm
        gc.collect()
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="eval/qwen-like")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = rows(options)
    if options.json:
        print(json.dumps(measured))
        return
    print(f"{'backend':10} {'constraint':17} {'legal':>6} {'canonical':>9} {'tokens':>7} {'tokens/s':>9}")
    for row in measured:
        print(
            f"{row['backend']:10} {row['constraint']:17} {row['legal']:6} {row['canonical']:9} {row['tokens']:7} "
            f"{row['tokens_per_second']:9.0f}"
        )


if __name__ == "__main__":
    main()
