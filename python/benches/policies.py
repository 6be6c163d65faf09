"""Time and memory of log-probabilities under a mask, forwards and backwards, beside those of the whole vocabulary.

    python python/benches/policies.py        # batch 8, 500 tokens, hidden 1,024, vocabulary 151,936
    python python/benches/policies.py --dtype bfloat16 --device cuda

Each way runs in a process of its own on the same hidden states, head and completions: random legal texts, cut off at
the length. `full` is torch's log_softmax over all logits and a gather; `full, in parts` the same with a few positions
at a time, each computed again in the backward pass. Memory is what the process (or the GPU) held at most beyond the
inputs; the head's gradient, which both have to make, is part of it. Time is the least of the runs, with the preparation
of legal ids on the host, and without the first run.
Also printed: microseconds a token of `Automaton.legal`, on one thread.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch

import moldrift
from moldrift.torch import masked_log_probs

#: Drug-like molecules, about 25 heavy atoms each, so that their texts are longer than 500 tokens with one token a digit.
SMILES = (
    "CC(=O)Nc1ccc(cc1)S(=O)(=O)N1CCN(CC1)c1ccccc1OC",
    "COc1ccc2nc(sc2c1)N1CCN(CC1)C(=O)c1ccc(F)cc1",
    "CC(C)(C)OC(=O)N1CCC(CC1)c1nc2ccccc2n1CC(=O)O",
    "O=C(Nc1ccc(Cl)cc1)C1CCN(CC1)S(=O)(=O)c1ccccc1F",
)
WAYS = ("masked", "full", "full, in parts")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--tokenizer", default="qwen-like", help="its legal ids have to be below the vocabulary"
    )
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=500)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=1, help="timed ones")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


def random_text(constraint: Any, length: int, seed: int) -> list[int]:
    """A legal text of random tokens, up to a length."""
    draw, ids = random.Random(seed), []
    while len(ids) < length and not constraint.is_over(ids):
        ids.append(draw.choice(constraint.allowed(ids)[1]))
    return ids


def texts(said: argparse.Namespace, automaton: moldrift.Automaton) -> tuple[list[str], list[list[int]]]:
    smiles = [SMILES[number % len(SMILES)] for number in range(said.batch)]
    return smiles, [
        random_text(automaton.constraint(one), said.length, number) for number, one in enumerate(smiles)
    ]


def full(hidden: torch.Tensor, head: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """What trainers do: the softmax over all logits, in 32 bits."""
    logits = torch.nn.functional.linear(hidden, head).float()
    return logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]


def in_parts(hidden: torch.Tensor, head: torch.Tensor, ids: torch.Tensor, size: int = 128) -> torch.Tensor:
    from torch.utils.checkpoint import checkpoint

    rows, tokens = hidden.flatten(0, 1), ids.flatten()
    parts = [
        checkpoint(full, rows[at : at + size], head, tokens[at : at + size], use_reentrant=False)
        for at in range(0, len(rows), size)
    ]
    return torch.cat(parts).view(ids.shape)


def peak(device: str) -> int:
    """The most bytes that were held so far."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_way(said: argparse.Namespace) -> dict[str, Any]:
    """Seconds and bytes of one way, in this process."""
    torch.set_num_threads(said.threads)
    automaton = moldrift.Automaton(said.tokenizer, eos_token_id=0)
    smiles, written = texts(said, automaton)
    legal = automaton.legal(smiles, written)
    padded = [one + [0] * (said.length - len(one)) for one in written]
    ids = torch.tensor(padded, device=said.device)
    torch.manual_seed(0)
    dtype = getattr(torch, said.dtype)
    hidden = torch.randn(said.batch, said.length, said.hidden).to(said.device, dtype).requires_grad_()
    head = torch.empty(said.vocabulary, said.hidden, dtype=dtype, device=said.device)
    head = head.normal_(std=said.hidden**-0.5).requires_grad_()
    ways = {
        "masked": lambda: masked_log_probs(hidden, ids, legal, head),
        "full": lambda: full(hidden, head, ids),
        "full, in parts": lambda: in_parts(hidden, head, ids),
    }
    before, seconds = peak(said.device), []
    for _ in range(said.runs + 1):
        hidden.grad = head.grad = None
        if said.device == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        ways[said.way]().sum().backward()
        if said.device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return {"seconds": min(seconds[1:]), "bytes": peak(said.device) - before}


def microseconds_of_legal(said: argparse.Namespace) -> float:
    """Of `Automaton.legal`, a token: the median of 20 calls."""
    automaton = moldrift.Automaton(said.tokenizer, eos_token_id=0)
    smiles, written = texts(said, automaton)
    found = []
    for _ in range(20):
        began = time.perf_counter()
        automaton.legal(smiles, written)
        found.append(time.perf_counter() - began)
    return float(np.median(found)) / sum(map(len, written)) * 1e6


def main() -> None:
    said = options()
    if said.way:
        print(json.dumps(one_way(said)))
        return
    print(f"{said.tokenizer}: legal takes {microseconds_of_legal(said):.2f} µs a token")
    found: dict[str, dict[str, float]] = {}
    for way in said.ways:
        ran = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--way", way],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found[way] = json.loads(ran.stdout)
    first = found[said.ways[0]]
    print(
        f"batch {said.batch}, {said.length} tokens, hidden {said.hidden}, vocabulary {said.vocabulary}, {said.dtype}, "
        f"{said.device}, {said.threads} thread(s), forwards and backwards"
    )
    print("| | seconds | MiB | times the seconds | times the memory |\n| --- | --- | --- | --- | --- |")
    for way, one in found.items():
        ratios = (one["seconds"] / first["seconds"], one["bytes"] / first["bytes"])
        print(
            f"| {way} | {one['seconds']:.3f} | {one['bytes'] / 2**20:,.0f} | {ratios[0]:.1f} | {ratios[1]:.1f} |"
        )


if __name__ == "__main__":
    main()
