"""GRPO with a mask: TRL's trainer, rollouts held to their molecules, and log-probabilities of the policy that wrote
them.

    pip install './python[trl]' python python/examples/grpo.py --model eval/qwen-like --references
    corpora/default.jsonl.gz --molecules 8 --steps 20 -o out

Without a GPU on a small checkpoint: about a second and a half a step. `--references` are training texts (JSON Lines
with `canonical_smiles` and `embedded_smiles`), whose molecules are the prompts. The reward is that of
`moldrift.trl.judge_reward`: valid, and near a reference. With `--vllm` TRL makes the engine; each prompt still has its
own grammar.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig

import moldrift
from moldrift.trl import ConstrainedGRPOTrainer, judge_reward


def read(path: Path, molecules: int) -> dict[str, list[str]]:
    """The first molecules of a file, with all their texts."""
    found: dict[str, list[str]] = {}
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            found.setdefault(record["canonical_smiles"], []).append(record["embedded_smiles"])
    smallest = sorted(found, key=lambda smiles: found[smiles][0].count("<"))
    return {smiles: found[smiles] for smiles in smallest[:molecules]}


def main(arguments: Sequence[str] | None = None) -> ConstrainedGRPOTrainer:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--references", type=Path, required=True)
    parser.add_argument("--encoding", default="fixed")
    parser.add_argument("--molecules", type=int, default=1000, help="the smallest of the file")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--prompts", type=int, default=4, help="of an update")
    parser.add_argument("--generations", type=int, default=16, help="rollouts of a prompt")
    parser.add_argument("--max-tokens", type=int, default=2000)
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--beta", type=float, default=0.0, help="of the KL term")
    parser.add_argument("--vllm", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="in 32 bits, without a GPU")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args(arguments)

    references = read(options.references, options.molecules)
    automaton = moldrift.Automaton(options.model, encoding=options.encoding)
    judge = moldrift.Judge(references, encoding=options.encoding, thresholds=[0.5, 0.75])
    settings = GRPOConfig(
        output_dir=options.output,
        per_device_train_batch_size=options.prompts * options.generations,
        num_generations=options.generations,
        max_completion_length=options.max_tokens,
        max_steps=options.steps,
        learning_rate=options.learning_rate,
        beta=options.beta,
        # Log-probabilities are of the whole constrained policy, so nothing may be cut off in the rollout.
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        use_vllm=options.vllm,
        vllm_mode="colocate",
        bf16=not options.cpu,
        use_cpu=options.cpu,
        logging_steps=1,
        report_to=[],
    )
    trainer = ConstrainedGRPOTrainer(
        options.model,
        judge_reward(judge, automaton),
        settings,
        train_dataset=Dataset.from_dict({"prompt": [f"[SMILES]{one}[/SMILES]" for one in references]}),
        processing_class=AutoTokenizer.from_pretrained(options.model, padding_side="left"),
        automaton=automaton,
    )
    trainer.train()
    trainer.save_model(options.output)
    return trainer


if __name__ == "__main__":
    main()
