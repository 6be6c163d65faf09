#!/usr/bin/env python3
"""What a trained model gains from a better tokenizer: python3 eval/carry_on.py DRIFT OUT [options]

A checkpoint is carried on in four ways, with several seeds each, and all are measured on the same test molecules:

- own: with its own tokenizer;
- extended: with a tokenizer of fewer tokens a block (`drift train-tokenizer`), its rows begun in each way that
  `drift extend-model` knows;
- from nothing: the same shape and extended tokenizer, without the checkpoint's weights.

Each but the first is trained twice: with as many tokens as `own` (equal compute), and over as many conformers (equal text).
Nats, bond errors and MAT-P are paired by molecule with `own`: a molecule's figure is the mean over seeds, and the interval
is of 2,000 bootstrap samples of molecules. What is finished in OUT is not made again.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean

REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS = [REPOSITORY / "corpora" / name for name in ("default.jsonl.gz", "training.jsonl.gz")]
INITS = ("mean", "digits", "ends")
RESAMPLES = 2000


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drift", help="the program")
    parser.add_argument("out", type=Path, help="a folder for all that is made")
    parser.add_argument("--model", type=Path, default=REPOSITORY / "eval" / "qwen-like", help="the checkpoint")
    parser.add_argument("--designs", nargs="+", default=["separate:11", "fused:9"], help="kind:tokens a block")
    parser.add_argument("--inits", nargs="+", default=INITS, choices=INITS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=240, help="updates of own")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--learning-rate", default="3e-3")
    parser.add_argument("--samples", type=int, default=201, help="test molecules")
    parser.add_argument("--generations", type=int, default=2, help="texts of each")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


class Experiment:
    """Folders by name, and what makes them."""

    def __init__(self, given):
        self.given = given
        given.out.mkdir(parents=True, exist_ok=True)
        self.log = (given.out / "log.txt").open("a")

    def drift(self, *arguments):
        """Runs the program; what it prints goes to the log."""
        command = [self.given.drift, *map(str, arguments), "--threads", str(self.given.threads)]
        environment = {**os.environ, "RAYON_NUM_THREADS": str(self.given.threads)}
        print("+", *command, file=self.log, flush=True)
        done = subprocess.run(command, stdout=self.log, stderr=subprocess.PIPE, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")

    def folder(self, name, marker, make):
        """The folder of this name; made where the marker, its last file, is not there."""
        folder = self.given.out / name
        if not (folder / marker).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            print(name, file=sys.stderr, flush=True)
            make(folder)
        return folder

    def tokenizer(self, design):
        """The checkpoint's tokenizer, extended."""
        kind, tokens = design.split(":")
        return self.folder(
            f"tokenizer-{kind}-{tokens}",
            "tokenizer.json",
            lambda folder: self.drift(
                "train-tokenizer", "--base", self.given.model, "--kind", kind, "--tokens-per-block", tokens, "-o", folder
            ),
        )

    def train(self, name, steps, seed, *start):
        """A training from this start."""
        def make(folder):
            self.drift(
                "train-model", *start, "--corpus", *CORPUS, "--steps", steps, "--seed", seed, "--warmup", 20,
                "--batch-tokens", self.given.batch_tokens, "--learning-rate", self.given.learning_rate,
                "--optimizer", "muon", "--copy-weight", 3, "--noise", 0.005, "--save-every", 100_000, "-o", folder,
            )  # fmt: skip

        return self.folder(name, "recipe.json", make)

    def evaluated(self, model):
        """The record of a model, and its figures by molecule."""
        def make(folder):
            self.drift(
                "eval", "--model", model, "--samples", self.given.samples, "--generations", self.given.generations,
                "--lp", "automaton", "--likelihood", "--molecules", self.given.out / "molecules.jsonl", "-o", folder,
            )  # fmt: skip
            shutil.move(self.given.out / "molecules.jsonl", folder / "molecules.jsonl")

        folder = self.folder(f"eval-{model.name}", "molecules.jsonl", make)
        record = json.loads((folder / "record.json").read_text())
        lines = (folder / "molecules.jsonl").read_text().splitlines()
        return {
            "run": record["runs"][0],
            "tokens": record["likelihoods"][0]["tokens_per_conformer"],
            "molecules": {line["smiles"]: line for line in map(json.loads, lines)},
        }


def shape(model):
    """Options of a decoder of the model's shape."""
    config = json.loads((model / "config.json").read_text())
    names = {
        "--hidden": "hidden_size",
        "--layers": "num_hidden_layers",
        "--heads": "num_attention_heads",
        "--kv-heads": "num_key_value_heads",
        "--head-dim": "head_dim",
        "--intermediate": "intermediate_size",
        "--context": "max_position_embeddings",
    }
    return ["--arch", config["model_type"], *(part for flag, key in names.items() for part in (flag, config[key]))]


def figures(evaluated):
    """Figures of one way: means over seeds, by molecule where they are."""
    mean = {
        name: {
            smiles: fmean(one["molecules"][smiles][name] for one in evaluated)
            for smiles in evaluated[0]["molecules"]
            if all(one["molecules"][smiles][name] is not None for one in evaluated)
        }
        for name in ("nats", "bond_length_error_angstrom", "mat_p")
    }

    def share(part, whole):
        total = sum(one["run"][whole] for one in evaluated)
        return sum(one["run"][part] for one in evaluated) / total if total else None

    return {
        **mean,
        "stereo": share("stereocentres_right", "stereocentres"),
        "clashing": share("clashing", "checked"),
        "valid": share("valid", "samples"),
        "zero_z": share("zero_z", "checked_blocks"),
        "speed": fmean(one["run"]["samples"] / one["run"]["cpu_seconds"] for one in evaluated),
        "tokens": evaluated[0]["tokens"],
    }


def difference(ours, theirs):
    """The mean of `ours - theirs` over molecules that have both, with a 95 % bootstrap interval."""
    pairs = [ours[smiles] - theirs[smiles] for smiles in ours if smiles in theirs]
    draw = random.Random(0)
    means = sorted(fmean(draw.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return fmean(pairs), means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def row(name, updates, ours, own):
    """A line of the table; a dash where no text came to be measured."""
    cells = [name, f"{updates:,}", f"{ours['tokens']:.0f}"]
    for figure, digits in (("nats", 1), ("bond_length_error_angstrom", 3), ("mat_p", 2)):
        values = ours[figure].values()
        cells.append(f"{fmean(values):.{digits}f}" if values else "-")
        if ours is own or not values:
            cells.append("")
        else:
            mean, low, high = difference(ours[figure], own[figure])
            cells.append(f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]")
    for share in ("stereo", "clashing", "valid", "zero_z"):
        cells.append("-" if ours[share] is None else f"{100 * ours[share]:.1f} %")
    cells.append(f"{ours['speed'] / own['speed']:.2f}")
    return f"| {' | '.join(cells)} |"


HEADER = (
    "| | updates | tokens a conformer | nats | less own's | bond error, Å | less own's | MAT-P, Å | less own's "
    "| stereo right | clashing | valid | z = 0.0000 | speed |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main():
    given = options()
    experiment = Experiment(given)
    seeds = range(given.seeds)

    def trained(name, steps, *start):
        return figures(
            [
                experiment.evaluated(experiment.train(f"{name}-seed{seed}", steps, seed, *start))
                for seed in seeds
            ]
        )

    own = trained("own", given.steps, "--init", given.model)
    lines = [HEADER, row("own", given.steps, own, own)]
    lines.append(row("before", 0, figures([experiment.evaluated(given.model)]), own))
    for design in given.designs:
        tokenizer, label = experiment.tokenizer(design), design.replace(":", " ")
        starts = {}
        for init in given.inits:
            name = f"{tokenizer.name.removeprefix('tokenizer-')}-{init}"
            extended = experiment.folder(
                f"{name}-before",
                "config.json",
                lambda folder: experiment.drift(
                    "extend-model", "--model", given.model, "--tokenizer", tokenizer, "--init", init, "-o", folder
                ),
            )
            before = figures([experiment.evaluated(extended)])
            lines.append(row(f"{label}, {init}, before", 0, before, own))
            fresh = ["--init", extended, "--new-tokens-of", given.model, "--new-rows-warmup", given.steps // 20]
            starts[f"{label}, {init}"] = (name, fresh)
        nothing = ["--tokenizer", tokenizer, *shape(given.model)]
        starts[f"{label}, from nothing"] = (f"{tokenizer.name.removeprefix('tokenizer-')}-nothing", nothing)
        equal_text = round(given.steps * before["tokens"] / own["tokens"])
        for label, (name, start) in starts.items():
            for budget, steps in (("text", equal_text), ("compute", given.steps)):
                done = trained(f"{name}-{budget}", steps, *start)
                lines.append(row(f"{label}, equal {budget}", steps, done, own))
    table = "\n".join(lines) + "\n"
    (given.out / "table.md").write_text(table)
    print(table, end="")


if __name__ == "__main__":
    main()
