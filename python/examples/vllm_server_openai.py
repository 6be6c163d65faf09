"""Conformers from a vLLM server, with the OpenAI client.

    vllm serve eval/qwen-like --structured-outputs-config.backend guidance --port 8000
    python python/examples/vllm_server_openai.py --tokenizer eval/qwen-like 'CC=O' 'c1ccccc1O' -n 2 > answers.jsonl
    drift audit answers.jsonl

Each line is the prompt's SMILES and the server's answer as it came. The client needs the tokenizer alone, no model.
"""

from __future__ import annotations

import argparse
import json

from openai import OpenAI

import moldrift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("smiles", nargs="+")
    parser.add_argument("--tokenizer", required=True, help="of the model that is served")
    parser.add_argument("--dialect", default="fixed")
    parser.add_argument("--url", default="http://localhost:8000/v1")
    parser.add_argument("-n", type=int, default=1, help="texts a molecule")
    parser.add_argument("--max-tokens", type=int, default=2000)
    options = parser.parse_args()

    automaton = moldrift.Automaton(options.tokenizer, dialect=options.dialect)
    client = OpenAI(base_url=options.url, api_key="none")
    model = client.models.list().data[0].id
    for smiles in options.smiles:
        answer = client.completions.create(
            model=model,
            prompt=f"[SMILES]{smiles}[/SMILES]",
            n=options.n,
            max_tokens=options.max_tokens,
            extra_body={
                "structured_outputs": {"grammar": automaton.grammar(smiles)},
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
            },
        )
        print(json.dumps({"smiles": smiles, **answer.model_dump()}), flush=True)


if __name__ == "__main__":
    main()
