#!/usr/bin/env python3
"""GRPO on a small checkpoint, with a mask and without: python3 eval/grpo.py OUT [options]

Three ways to train the same checkpoint on the same prompts, reward and hyperparameters, each for as many seconds of CPU time of one
thread, with several seeds:

- masked: rollouts under the automaton, log-probabilities of the constrained policy (`moldrift.trl.ConstrainedGRPOTrainer`);
- unmasked: TRL's GRPOTrainer as it is;
- mismatched: rollouts under the automaton, log-probabilities of the whole softmax, as if there were no mask.

The reward of a text: 0 if it does not pass, else 1 if its chemistry is valid, plus exp(-d / 0.75 Å), d being the RMSD to the nearest
reference conformer. CPU time counts rollouts, rewards and updates. Figures of a step are over its rollouts. Before and after each
training 8 texts of each molecule are drawn as its rollouts are; coverage is over the molecules of the training, so nothing here says
how the model does on others.

What is finished in OUT is not made again. OUT/table.md and OUT/curves.svg are made of all that is there; curves need matplotlib.
Needs ./python[trl].
"""

import argparse
import gzip
import json
import os
import random
import time
from pathlib import Path
from statistics import fmean

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback, set_seed  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

import moldrift  # noqa: E402
from moldrift.trl import ConstrainedGRPOTrainer, judge_reward  # noqa: E402

REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS = REPOSITORY / "corpora" / "small.jsonl.gz"
ARMS = ("masked", "unmasked", "mismatched")
NEAR = 0.75


class Mismatched(ConstrainedGRPOTrainer):
    """The mask in the rollout alone."""

    _get_per_token_logps_and_entropies = GRPOTrainer._get_per_token_logps_and_entropies


TRAINERS = {"masked": ConstrainedGRPOTrainer, "unmasked": GRPOTrainer, "mismatched": Mismatched}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a folder for all that is made")
    parser.add_argument("--model", type=Path, default=REPOSITORY / "eval" / "qwen-like", help="the checkpoint")
    parser.add_argument("--arms", nargs="+", default=ARMS, choices=ARMS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cpu-seconds", type=float, default=120, help="of a training")
    parser.add_argument("--molecules", type=int, default=2, help="the smallest of the corpus of small molecules")
    parser.add_argument("--atoms", type=int, default=6, help="heavy atoms that a molecule has to have")
    parser.add_argument("--generations", type=int, default=16, help="rollouts of a prompt")
    parser.add_argument("--prompts", type=int, default=2, help="of an update")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    return parser.parse_args()


def references(count, least):
    """The smallest molecules with at least so many atoms, and the texts of all their conformers."""
    found = {}
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            found.setdefault(record["canonical_smiles"], []).append(record["embedded_smiles"])
    sizes = {smiles: texts[0].count("<") for smiles, texts in found.items() if texts[0].count("<") >= least}
    return {smiles: found[smiles] for smiles in sorted(sizes, key=lambda one: (sizes[one], one))[:count]}


class Clock(TrainerCallback):
    """Stops a training when its CPU time is spent."""

    def __init__(self, seconds):
        self.seconds, self.began = seconds, time.process_time()

    def spent(self):
        return time.process_time() - self.began

    def on_step_end(self, args, state, control, **others):
        control.should_training_stop = self.spent() > self.seconds


class Run:
    """One training, with its figures."""

    def __init__(self, said, arm, seed, found):
        self.said, self.arm, self.found = said, arm, found
        self.automaton = moldrift.Automaton(said.model)
        self.judge, self.steps = moldrift.Judge(found), []
        self.tokenizer = AutoTokenizer.from_pretrained(said.model, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(said.model, dtype=torch.float32)
        self.clock = Clock(said.cpu_seconds)
        random.seed(seed)
        set_seed(seed)
        inner = judge_reward(self.judge, self.automaton, near=NEAR, reward=self.note)

        def reward(**named):
            return inner(**named)

        settings = GRPOConfig(
            output_dir=str(said.out / "checkpoints"),
            per_device_train_batch_size=said.prompts * said.generations,
            num_generations=said.generations,
            max_completion_length=400,
            max_steps=10**6,
            learning_rate=said.learning_rate,
            lr_scheduler_type="constant",
            top_k=0,
            beta=0.0,
            seed=seed,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            logging_steps=10**6,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        prompts = Dataset.from_dict({"prompt": [f"[SMILES]{smiles}[/SMILES]" for smiles in found]})
        named = {} if arm == "unmasked" else {"automaton": self.automaton}
        self.trainer = TRAINERS[arm](
            self.model, reward, settings, train_dataset=prompts, processing_class=self.tokenizer, callbacks=[self.clock], **named
        )

    def note(self, scores):
        """The reward of each text; what a step came to is kept."""
        nearest = [np.nanmin(one) if not np.isnan(one).all() else np.inf for one in scores.rmsd]
        found = [
            valid + np.exp(-distance / NEAR) if passed else 0.0
            for passed, valid, distance in zip(scores.passed, scores.valid, nearest, strict=True)
        ]
        self.steps.append(
            {
                "cpu_seconds": round(self.clock.spent(), 2),
                "reward": fmean(found),
                "passed": fmean(scores.passed),
                "valid": fmean(scores.valid),
                "near": fmean(one < NEAR for one in nearest),
            }
        )
        return found

    def drawn(self):
        """Eight texts of each molecule by the present policy, as its rollouts are drawn, and what they come to."""
        smiles = [one for one in self.found for _ in range(8)]
        encoded = self.tokenizer([f"[SMILES]{one}[/SMILES]" for one in smiles], return_tensors="pt", padding=True)
        how = {}
        if self.arm != "unmasked":
            constraint = self.automaton.logits_processor(smiles)
            how = {"custom_generate": moldrift.constrained_generate, "constraint": constraint}
        with torch.no_grad():
            ids = self.model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                do_sample=True,
                temperature=1.0,
                top_p=1.0,
                top_k=0,
                max_new_tokens=400,
                pad_token_id=self.tokenizer.pad_token_id,
                **how,
            )
        eos = self.automaton.eos_token_id
        answers = ids[:, encoded["input_ids"].shape[1] :].tolist()
        texts = [self.automaton.text([one for one in row if one != eos]) for row in answers]
        scores = self.judge.score(smiles, texts)
        rewards = self.note(scores)
        step = self.steps.pop()
        del step["cpu_seconds"]
        matrices = [np.array(scores.rmsd[start : start + 8]) for start in range(0, len(smiles), 8)]
        covered = [(np.nan_to_num(one, nan=np.inf) < NEAR).any(0).mean() for one in matrices]
        return {**step, "cov_r": float(np.mean(covered)), "cov_p": step["near"], "reward": fmean(rewards)}

    def measured(self):
        """Everything that the training came to."""
        set_seed(1000)
        before = self.drawn()
        self.clock.began = time.process_time()
        wall = time.time()
        self.trainer.train()
        wall = time.time() - wall
        set_seed(1001)
        return {
            "before": before,
            "after": self.drawn(),
            "updates": self.trainer.state.global_step,
            "wall_seconds": round(wall, 1),
            "steps": self.steps,
        }


def table(runs):
    """Means over seeds before and after, and updates."""
    names = ("reward", "passed", "valid", "cov_r", "cov_p")
    lines = [
        f"| | updates | {' | '.join(names)} |",
        "| --- | --- |" + " --- |" * len(names),
    ]
    for arm in ARMS:
        found = [run for run in runs if run["arm"] == arm]
        for when in ("before", "after") if found else ():
            cells = [
                f"{fmean(run[when][name] for run in found):.3f} ({min(run[when][name] for run in found):.3f} to "
                f"{max(run[when][name] for run in found):.3f})"
                for name in names
            ]
            updates = " ".join(str(run["updates"]) for run in found) if when == "after" else ""
            lines.append(f"| {arm}, {when} | {updates} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def curves(runs, path):
    """Reward, valid and near over CPU time, each seed thin and the mean of seeds thick."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return
    pyplot.rcParams["svg.hashsalt"] = "drift"
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.5))
    colours = dict(zip(ARMS, ("tab:blue", "tab:orange", "tab:green"), strict=True))
    for axis, name in zip(axes, ("reward", "valid", "near"), strict=True):
        for arm, colour in colours.items():
            found = [run for run in runs if run["arm"] == arm]
            for number, run in enumerate(found):
                at = [step["cpu_seconds"] for step in run["steps"]]
                values = np.array([step[name] for step in run["steps"]])
                smooth = [values[max(0, end - 9) : end + 1].mean() for end in range(len(values))]
                axis.plot(at, smooth, color=colour, linewidth=0.9, label=arm if number == 0 else None)
        axis.set_title(f"{name} (mean of ten updates)")
        axis.set_xlabel("CPU s")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    said = options()
    torch.set_num_threads(1)
    said.out.mkdir(parents=True, exist_ok=True)
    found = references(said.molecules, said.atoms)
    for seed in said.seeds:
        for arm in said.arms:
            path = said.out / f"{arm}-seed{seed}.json"
            if path.exists():
                continue
            run = Run(said, arm, seed, found).measured()
            settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(said).items()}
            settings = {name: settings[name] for name in ("cpu_seconds", "generations", "prompts", "learning_rate")}
            record = {"arm": arm, "seed": seed, "settings": settings, "molecules": list(found), **run}
            path.with_suffix(".part").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            path.with_suffix(".part").rename(path)
            print(arm, seed, run["updates"], run["before"], run["after"], flush=True)
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(said.out.glob("*-seed*.json"))]
    (said.out / "table.md").write_text(table(runs), encoding="utf-8")
    curves(runs, said.out / "curves.svg")
    print(table(runs))


if __name__ == "__main__":
    main()
