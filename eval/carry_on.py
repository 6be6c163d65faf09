#!/usr/bin/env python3
"""What a trained model gains from a better tokenizer: python3 eval/carry_on.py DRIFT OUT --corpus INPUT... [options]

A checkpoint is carried on in four ways, with several seeds each, and all are measured on the same test molecules:

- own: with its own tokenizer;
- extended: with a tokenizer of fewer tokens a block (`drift train-tokenizer`), its rows begun in each way that
  `drift extend-model` knows;
- from nothing: the same shape and extended tokenizer, without the checkpoint's weights.

Each but the first is trained twice: with as many tokens as `own` (equal compute), and over as many conformers (equal text).
Nats, bond errors and MAT-P are paired by molecule with `own`: a molecule's figure is the mean over seeds, and the interval
is of 2,000 bootstrap samples of molecules. What is finished in OUT is not made again, nor a training whose figures are in --figures: its
files can be taken to another machine.
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
INITS = ("mean", "digits", "ends")
RESAMPLES = 2000

# Of each molecule, and of the whole run.
FIGURES = ("nats", "bond_length_error_angstrom", "mat_p")
COUNTS = (
    "samples", "cpu_seconds", "stereocentres_right", "stereocentres", "clashing", "checked", "valid", "zero_z",
    "checked_blocks",
)  # fmt: skip


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drift", help="the program")
    parser.add_argument("out", type=Path, help="a folder for all that is made")
    parser.add_argument("--figures", type=Path, help="a folder for a file of figures a training; OUT/figures without")
    parser.add_argument("--model", type=Path, default=REPOSITORY / "eval" / "qwen-like", help="the checkpoint")
    parser.add_argument("--corpus", nargs="+", type=Path, required=True, help="what to train on, such as small-train.jsonl.gz")
    parser.add_argument("--test", default="small", help="the corpus of test molecules, as `drift eval --corpus` takes it")
    parser.add_argument("--designs", nargs="+", default=["separate:11", "fused:9"], help="kind:tokens a block")
    parser.add_argument("--inits", nargs="+", default=INITS, choices=INITS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=240, help="updates of own")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--learning-rate", default="3e-3")
    parser.add_argument("--samples", type=int, default=423, help="test molecules")
    parser.add_argument("--generations", type=int, default=1, help="texts of each")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    return parser.parse_args()


class Experiment:
    """Folders by name, and what makes them."""

    def __init__(self, given):
        self.given = given
        given.out.mkdir(parents=True, exist_ok=True)
        self.figures = given.figures or given.out / "figures"
        self.figures.mkdir(parents=True, exist_ok=True)
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
                "train-model", *start, "--corpus", *self.given.corpus, "--steps", steps, "--seed", seed, "--warmup", 20,
                "--batch-tokens", self.given.batch_tokens, "--learning-rate", self.given.learning_rate,
                "--optimizer", "muon", "--copy-weight", 3, "--noise", 0.005, "--save-every", 100_000, "-o", folder,
            )  # fmt: skip

        return self.folder(name, "recipe.json", make)

    def evaluated(self, name, model):
        """The figures of a model of this name, which `model` makes if they are not there."""
        path = self.figures / f"{name}.json"
        if not path.is_file():
            path.write_text(json.dumps(self.figures_of(model())))
        figures = json.loads(path.read_text())
        rows = zip(self.molecules(), figures["molecules"], strict=True)
        figures["molecules"] = {smiles: dict(zip(FIGURES, values)) for smiles, values in rows}
        return figures

    def molecules(self, found=None):
        """The molecules of all figures, which are those that were found first."""
        path = self.figures / "molecules.json"
        if not path.is_file():
            path.write_text(json.dumps(found, indent=0))
        known = json.loads(path.read_text())
        if found not in (None, known):
            sys.exit(f"{path} has other molecules than those that were measured: give another folder of figures")
        return known

    def figures_of(self, model):
        """What is told of a model: its run under the automaton, and some figures of each molecule."""
        molecules = self.given.out / f"molecules-{model.name}.jsonl"

        def make(folder):
            self.drift(
                "eval", "--model", model, "--corpus", self.given.test, "--samples", self.given.samples, "--generations", self.given.generations,
                "--lp", "automaton", "--likelihood", "--molecules", molecules, "-o", folder,
            )  # fmt: skip
            shutil.move(molecules, folder / "molecules.jsonl")

        folder = self.folder(f"eval-{model.name}", "molecules.jsonl", make)
        record = json.loads((folder / "record.json").read_text())
        lines = [json.loads(line) for line in (folder / "molecules.jsonl").read_text().splitlines()]
        self.molecules([line["smiles"] for line in lines])
        rounded = lambda value: None if value is None else round(value, 4)
        return {
            "run": {name: record["runs"][0][name] for name in COUNTS},
            "tokens": record["likelihoods"][0]["tokens_per_conformer"],
            "molecules": [[rounded(line[name]) for name in FIGURES] for line in lines],
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
        for name in FIGURES
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
    for figure, digits in zip(FIGURES, (1, 3, 2)):
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

    def trained(name, steps, start):
        return figures(
            [
                experiment.evaluated(
                    f"{name}-seed{seed}", lambda: experiment.train(f"{name}-seed{seed}", steps, seed, *start())
                )
                for seed in given.seeds
            ]
        )

    own = trained("own", given.steps, lambda: ["--init", given.model])
    lines = [HEADER, row("own", given.steps, own, own)]
    lines.append(row("before", 0, figures([experiment.evaluated("before", lambda: given.model)]), own))
    for design in given.designs:
        slug, label = design.replace(":", "-"), design.replace(":", " ")
        starts = {}
        for init in given.inits:
            def extended(init=init):
                return experiment.folder(
                    f"{slug}-{init}-before",
                    "config.json",
                    lambda folder: experiment.drift(
                        "extend-model", "--model", given.model, "--tokenizer", experiment.tokenizer(design),
                        "--init", init, "-o", folder,
                    ),
                )  # fmt: skip

            before = figures([experiment.evaluated(f"{slug}-{init}-before", extended)])
            lines.append(row(f"{label}, {init}, before", 0, before, own))
            starts[init] = lambda extended=extended: [
                "--init", extended(), "--new-tokens-of", given.model, "--new-rows-warmup", given.steps // 20
            ]  # fmt: skip
        starts["nothing"] = lambda: ["--tokenizer", experiment.tokenizer(design), *shape(given.model)]
        equal_text = round(given.steps * before["tokens"] / own["tokens"])
        for init, start in starts.items():
            for budget, steps in (("text", equal_text), ("compute", given.steps)):
                done = trained(f"{slug}-{init}-{budget}", steps, start)
                of = "from nothing" if init == "nothing" else init
                lines.append(row(f"{label}, {of}, equal {budget}", steps, done, own))
    table = "\n".join(lines) + "\n"
    (given.out / "table.md").write_text(table)
    print(table, end="")


if __name__ == "__main__":
    main()
