"""A whole test set through vLLM's data-parallel serving, and what it is worth beside its reference conformers.

    vllm serve MODEL --data-parallel-size 8 --structured-outputs-config.backend guidance
    python python/examples/vllm_test_set.py --tokenizer MODEL --test-set drugs_test_smiles.csv -o texts.jsonl
    drift audit texts.jsonl --references test_set.pickle

The server spreads requests over its engines; this client keeps it full. As is usual for GEOM a molecule of k reference
conformers gets 2k texts. Rows are written as they come, so that a run that was interrupted goes on where it stopped.
The CSV has the columns `smiles` (or `corrected_smiles`, which is taken first) and `n_conformers`.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
from pathlib import Path
from typing import TextIO

from openai import AsyncOpenAI

import moldrift


def test_set(path: Path, done: set[str], limit: int | None) -> list[tuple[str, int]]:
    """Molecules that are still to do, with their numbers of texts; those with most atoms first."""
    with path.open(newline="") as file:
        rows = [
            (row.get("corrected_smiles") or row["smiles"], 2 * int(row["n_conformers"]))
            for row in csv.DictReader(file)
        ]
    rows = [row for row in rows[:limit] if row[0] not in done]
    return sorted(rows, key=lambda row: -len(row[0]))


def already(path: Path) -> set[str]:
    """Molecules that an earlier run finished."""
    if not path.exists():
        return set()
    return {
        json.loads(line)["smiles"]
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.endswith("}")
    }


async def one(
    client: AsyncOpenAI, model: str, smiles: str, texts: int, grammar: str, options: argparse.Namespace
) -> str:
    """The row of one molecule: all of its texts."""
    answer = await client.completions.create(
        model=model,
        prompt=f"[SMILES]{smiles}[/SMILES]",
        n=texts,
        seed=options.seed,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        extra_body={
            "structured_outputs": {"grammar": grammar},
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
        },
    )
    return json.dumps(
        {"smiles": smiles, "lp": "automaton", "all_generations": [choice.text for choice in answer.choices]}
    )


async def serve(rows: list[tuple[str, int]], output: TextIO, options: argparse.Namespace) -> None:
    """Asks for all molecules, so many at a time."""
    automaton = moldrift.Automaton(options.tokenizer, dialect=options.dialect)
    client = AsyncOpenAI(base_url=options.url, api_key="none", timeout=None)
    model = (await client.models.list()).data[0].id
    free = asyncio.Semaphore(options.at_once)

    async def run(smiles: str, texts: int) -> None:
        async with free:
            row = await one(client, model, smiles, texts, automaton.grammar(smiles), options)
        output.write(row + "\n")
        output.flush()

    await asyncio.gather(*(run(smiles, texts) for smiles, texts in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokenizer", required=True, help="of the model that is served")
    parser.add_argument("--dialect", default="fixed")
    parser.add_argument("--test-set", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="the first molecules alone")
    parser.add_argument("--url", default="http://localhost:8000/v1")
    parser.add_argument("--at-once", type=int, default=64, help="molecules in flight")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()

    rows = test_set(options.test_set, already(options.output), options.limit)
    with options.output.open("a", encoding="utf-8") as output:
        asyncio.run(serve(rows, output, options))


if __name__ == "__main__":
    main()
