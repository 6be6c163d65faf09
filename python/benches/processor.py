"""What the logits processor takes of a step, beside a dense mask and beside a model of 0.6B parameters.

    python python/benches/processor.py [--batch 32] [--vocabulary 151936] [--model]
    python python/benches/processor.py --conformers FILE

Both masks run in turn on the same scores in the same process, along random legal texts. Times are medians
over steps.

With --conformers, a JSONL file of rows with `canonical_smiles` and `embedded_smiles`: what the processor of the geometry
takes along real conformers, one text at a time and on one thread, beside that of the automaton, in ms an atom: of whole
texts, and of each fifth of their atoms, by the number of heavy atoms.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median

import torch

import moldrift

REPOSITORY = Path(__file__).resolve().parents[2]


def molecules(count: int) -> list[str]:
    """The first molecules of the embedded corpus."""
    found: dict[str, None] = {}
    with gzip.open(REPOSITORY / "corpora" / "default.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found.setdefault(json.loads(line)["canonical_smiles"])
            if len(found) == count:
                break
    return list(found)


def random_texts(automaton: moldrift.Automaton, smiles: list[str], length: int) -> list[list[int]]:
    """Legal texts of random tokens, ``[molecules][length]``."""
    draw, texts = random.Random(0), []
    for one in smiles:
        ids: list[int] = []
        while len(ids) < length:
            ids.append(draw.choice(automaton.allowed_ids(one, ids)))
        texts.append(ids)
    return texts


#: What a step is set beside.
PEERS = ("ours", "mask made, masked_fill", "masked_fill", "masked_fill_", "fill_")


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def masks(tokenizer: str, batch: int, vocabulary: int, steps: int) -> dict[str, float]:
    """Seconds of a step: the processor; a dense mask that is made and applied; one that is there and applied, to a copy
    and in place; and -inf written over all scores, which every processor of transformers has to do."""
    automaton = moldrift.Automaton(tokenizer, eos_token_id=0)
    smiles = molecules(batch)
    texts = torch.tensor(random_texts(automaton, smiles, steps))
    ids = torch.cat([torch.ones((batch, 40), dtype=torch.int64), texts], 1)
    lp = automaton.logits_processor(smiles)
    fresh = torch.randn((batch, vocabulary))
    times: dict[str, list[float]] = {name: [] for name in PEERS}
    for step in range(steps):
        scores = fresh.clone()
        times["ours"].append(seconds(lambda: lp(ids[:, : 40 + step], scores)))  # noqa: B023
        mask = torch.isinf(scores)
        rows, legal = (~mask).nonzero(as_tuple=True)
        scores = fresh.clone()

        def made() -> None:
            made_mask = torch.ones_like(scores, dtype=torch.bool)  # noqa: B023
            made_mask[rows, legal] = False  # noqa: B023
            scores.masked_fill(made_mask, float("-inf"))  # noqa: B023

        times["mask made, masked_fill"].append(seconds(made))
        times["masked_fill"].append(seconds(lambda: scores.masked_fill(mask, float("-inf"))))  # noqa: B023
        times["masked_fill_"].append(seconds(lambda: scores.masked_fill_(mask, float("-inf"))))  # noqa: B023
        times["fill_"].append(seconds(lambda: scores.fill_(float("-inf"))))  # noqa: B023
    return {name: median(all_of_one) for name, all_of_one in times.items()}


def conformers(path: Path, atoms: int, inside: moldrift.Automaton, count: int = 10) -> list[tuple[str, str]]:
    """The first molecules of a file with so many heavy atoms, each with a conformer whose tokens are legal."""
    tokenizer, found = inside.source.tokenizer, dict[str, str]()
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            smiles, text = row["canonical_smiles"], row["embedded_smiles"]
            if text.count("<") != atoms or smiles in found or len(found) == count:
                continue
            with contextlib.suppress(moldrift.ForbiddenToken):
                inside.legal([smiles], [tokenizer.answer_ids(f"[CONFORMER]{text}[/CONFORMER]")])
                found[smiles] = text
    return list(found.items())


def seconds_of_atoms(automaton: moldrift.Automaton, smiles: str, text: str, atoms: int) -> list[float]:
    """CPU seconds of the processor for each atom of a text: up to the token that ends its block."""
    tokenizer = automaton.source.tokenizer
    ids = torch.tensor([[1, *tokenizer.answer_ids(f"[CONFORMER]{text}[/CONFORMER]")]])
    scores, lp = torch.zeros((1, 1 + max(ids[0].tolist()))), automaton.logits_processor([smiles])
    times, atom = [0.0] * atoms, 0
    for step in range(1, ids.shape[1]):
        # The last tokens belong to no atom: the end of the text.
        begin = time.thread_time()
        lp(ids[:, :step], scores)
        times[min(atom, atoms - 1)] += time.thread_time() - begin
        atom += ">" in automaton.token(int(ids[0, step]))
    return times


def geometry(tokenizer: str, path: Path) -> None:
    """Prints the cost of the geometry by the number of heavy atoms."""
    torch.set_num_threads(1)
    peers = (
        moldrift.Automaton(tokenizer, eos_token_id=0),
        moldrift.GeometryAutomaton(tokenizer, eos_token_id=0),
    )
    for atoms in range(10, 61, 5):
        rows = conformers(path, atoms, peers[1])
        for automaton in peers if rows else ():
            times = [seconds_of_atoms(automaton, smiles, text, atoms) for smiles, text in rows]
            by_atom = [1e3 * mean(own[atom] for own in times) for atom in range(atoms)]
            fifths = [f"{mean(by_atom[k * atoms // 5 : (k + 1) * atoms // 5]):.2f}" for k in range(5)]
            print(
                f"{tokenizer}, {atoms} heavy atoms, {len(rows)} texts: {automaton.kind} {mean(by_atom):.2f} ms an atom,"
                f" by fifths of the atoms {', '.join(fifths)}"
            )


def model_step(batch: int, vocabulary: int, length: int = 128) -> float:
    """Seconds of one decoding step of a model of Qwen3's 0.6B shape with random weights."""
    from transformers import AutoModelForCausalLM, DynamicCache, Qwen3Config

    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        tie_word_embeddings=True,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    cache = DynamicCache(config=config)
    one = torch.ones((batch, 1), dtype=torch.int64)
    with torch.inference_mode():
        for layer in range(config.num_hidden_layers):
            past = torch.zeros((batch, 8, length, 128))
            cache.update(past, past.clone(), layer)
        model(input_ids=one, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return seconds(lambda: model(input_ids=one, past_key_values=cache, use_cache=True, logits_to_keep=1))


def main() -> None:
    """Prints times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", action="append", help="qwen-like and llama-like without it")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--model", action="store_true", help="also a step of a 0.6B shape, which takes 5 GB")
    parser.add_argument(
        "--conformers", type=Path, help="print the cost of the geometry along these conformers"
    )
    options = parser.parse_args()
    if options.conformers:
        for tokenizer in options.tokenizer or ["qwen-like"]:
            geometry(tokenizer, options.conformers)
        return
    step = model_step(options.batch, options.vocabulary) if options.model else None
    print(f"batch {options.batch}, vocabulary {options.vocabulary}, {torch.get_num_threads()} threads")
    for tokenizer in options.tokenizer or ["qwen-like", "llama-like"]:
        times = masks(tokenizer, options.batch, options.vocabulary, options.steps)
        ours = times.pop("ours")
        peers = [f"{name} {one * 1e3:.2f} ms, ratio {ours / one:.3f}" for name, one in times.items()]
        line = f"{tokenizer}: {ours * 1e3:.2f} ms; " + "; ".join(peers)
        if step is not None:
            line += f"; step of a 0.6B shape {step * 1e3:.0f} ms, share {ours / step:.4f}"
        print(line)


if __name__ == "__main__":
    main()
