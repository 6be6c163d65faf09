#!/usr/bin/env python3
"""The table of eval/README.md of models that differ in nothing but the encoding that they write.

    eval/by_encoding.py ENCODINGS.json CORPUS.jsonl.gz RECORD.json… [--verdicts VERDICTS.jsonl…]

Each RECORD.json is what `drift eval --likelihood` wrote of the six models of `eval/train.sh OUT by-…`, one for each seed of their training:
`by-fixed`, or `by-fixed-0` and so on. ENCODINGS.json is what `drift encodings --json` says of CORPUS, the molecules of all. Models
`drugs-by-…` are compared in the same way. Nats of two encodings compare only per volume: a text says in which cell a coordinate lies, and
the log of the cell's width in Å is added for each coordinate. The first atoms span the frame, so six coordinates are 0 in every text; the
other 3n - 6 count. Prints Markdown with the mean over seeds, and [the least, the greatest] of them, or of one seed its 95 % interval by
molecule; and how far the order by a column of `drift encodings` is that of the models (Kendall's tau). VERDICTS.jsonl are what `drift eval
--verdicts` wrote of the same runs: then also the differences between models, paired by molecule (the mean over texts and seeds), with 95 %
intervals.
"""

import argparse
import gzip
import itertools
import json
import math
import pathlib
import re
from statistics import fmean, stdev

# The model, its encoding's name and tokens a block in the report of `drift encodings`, and how the table calls it.
MODELS = [
    ("by-fixed", "fixed", None, "`fixed`, tokens of the base"),
    ("by-separate", "fixed", 11, "`fixed`, 11 tokens a block"),
    ("by-fused", "fixed", 9, "`fixed`, 9 tokens a block"),
    ("by-two", "fixed-2", 7, "`fixed-2`, 7 tokens a block"),
    ("by-bins", "binned-v2:-9.525,9.525,0.05", 4, "bins of 0.05 Å, 4 tokens a block"),
    ("by-uniform", "uniform-256", 4, "256 bins of 0.075 Å, 4 tokens a block"),
]
# Where the models of drug-like molecules, drugs-by-…, differ: their bins reach farther.
FARTHER = {
    "by-bins": ("binned-v2:-21.025,21.025,0.05", "bins of 0.05 Å, 4 tokens a block"),
    "by-uniform": ("uniform-560", "560 bins of 0.075 Å, 4 tokens a block"),
}


def compared(runs):
    """The rows of the table, as `MODELS`: of small molecules, or of drug-like ones if the runs are."""
    if not any(run["model"].startswith("drugs-") for run in runs):
        return MODELS
    farther = [(model, *FARTHER.get(model, (encoding, title)), tokens) for model, encoding, tokens, title in MODELS]
    return [(f"drugs-{model}", encoding, tokens, title) for model, encoding, title, tokens in farther]


def row_of(rows, encoding, tokens):
    """The row of an encoding in the base's tokens, or in those of the extension to so many a block."""
    for row in rows:
        name = row["encoding"]
        name = name["name"] if isinstance(name, dict) else name
        is_extended = row["new_tokens"] > 0
        if name == encoding and (
            row["tokens_per_block"]["max"] == tokens if is_extended else tokens is None
        ):
            return row
    raise SystemExit(f"no row of {encoding} with {tokens} tokens a block")


def free_coordinates(corpus):
    """The mean of 3n - 6 over the molecules of a corpus, as nats are averaged."""
    atoms = {}
    with gzip.open(corpus, "rt") as lines:
        for row in map(json.loads, lines):
            atoms[row["canonical_smiles"]] = row["embedded_smiles"].count("<")
    return sum(3 * n - 6 for n in atoms.values()) / len(atoms)


def spread(values, interval, digits, unit=1.0):
    """The mean over seeds and their range, or a single value and its interval."""
    low, high = (interval["low"], interval["high"]) if len(values) == 1 else (min(values), max(values))
    mean, low, high = (f"{unit * value:.{digits}f}" for value in (fmean(values), low, high))
    return f"{mean} [{low}, {high}]"


def tau(one, other):
    """Kendall's tau of two orders; pairs that tie in either do not count."""
    agree = against = 0
    for a, b in itertools.combinations(range(len(one)), 2):
        product = (one[a] - one[b]) * (other[a] - other[b])
        agree, against = agree + (product > 0), against + (product < 0)
    return (agree - against) / max(1, agree + against)


def figures(runs, nats, cell):
    """What the table shows of the runs of one model, one a seed, of the nats of each a conformer, and of the log of a cell's volume."""
    first = runs[0]
    intervals, error = first["chemistry_intervals"], first["geometry"]["bond_length_error_angstrom"]

    def over(figure):
        return [figure(run) for run in runs]

    def coverage(side):
        return 100 * fmean(over(lambda run: run["thresholds"][0][side]["mean"]))

    density = [text["mean"] + cell for text in nats]
    shifted = {bound: value + cell for bound, value in nats[0]["interval"].items()}
    valid = over(lambda run: run["valid"] / run["samples"])
    stereo = over(lambda run: run["stereocentres_right"] / run["stereocentres"])
    errors = over(lambda run: run["geometry"]["bond_length_error_angstrom"]["mean"])
    clashing = fmean(over(lambda run: run["clashing"] / run["samples"]))
    mat_r, mat_p = (fmean(over(lambda run, side=side: run[side]["mean"])) for side in ("mat_r", "mat_p"))
    cells = [
        spread(density, shifted, 1),
        spread(valid, intervals["valid"], 1, 100),
        spread(stereo, intervals["stereocentres_right"], 1, 100),
        f"{100 * clashing:.1f}",
        spread(errors, error["interval"], 3),
        f"{coverage('cov_r'):.1f}, {coverage('cov_p'):.1f}",
        f"{mat_r:.3f}, {mat_p:.3f}",
        f"{fmean(over(lambda run: run['samples'] / run['cpu_seconds'])):.0f}",
    ]
    return cells, {"nats": -fmean(density), "valid": fmean(valid), "MAT-P": -mat_p}


def arm(model):
    """The name of a model without its seed."""
    return re.sub(r"-\d+$", "", model)


def by_molecule(files):
    """`{model: {figure: {SMILES: mean}}}` of verdicts, over texts and seeds."""
    texts = {}
    for path in files:
        for row in map(json.loads, path.read_text().splitlines()):
            if row["lp"] == "automaton":
                texts.setdefault(arm(row["model"]), {}).setdefault(row["smiles"], []).append(row)

    def means(molecules, figure):
        known = ((smiles, [value for row in rows if (value := figure(row)) is not None]) for smiles, rows in molecules.items())
        return {smiles: fmean(values) for smiles, values in known if values}

    shown = {
        "valid, %": lambda row: 100 * row["valid"],
        "stereocentres right, %": lambda row: 100 * row["stereocentres_right"] / row["stereocentres"] if row["stereocentres"] else None,
        "bond error, Å": lambda row: row["bond_error_angstrom"],
        "RMSD to the nearest reference, Å": lambda row: row["rmsd_angstrom"],
    }
    return {model: {name: means(molecules, figure) for name, figure in shown.items()} for model, molecules in texts.items()}


def paired(models, rows):
    """The table of differences between each model and the one before it in these rows."""
    names = list(next(iter(models.values())))
    print("\n| less the row before |" + "".join(f" {name} |" for name in names) + "\n|" + " --- |" * (len(names) + 1))
    for (before, *_), (model, _, _, title) in itertools.pairwise(rows):
        cells = []
        for name in names:
            one, other = models[model][name], models[before][name]
            differences = [one[smiles] - other[smiles] for smiles in one.keys() & other.keys()]
            mean, half = fmean(differences), 1.96 * stdev(differences) / math.sqrt(len(differences))
            digits = 1 if name.endswith("%") else 4
            cells.append(f"{mean:+.{digits}f} [{mean - half:+.{digits}f}, {mean + half:+.{digits}f}]")
        print(f"| {title} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encodings", type=pathlib.Path)
    parser.add_argument("corpus")
    parser.add_argument("records", type=pathlib.Path, nargs="+")
    parser.add_argument("--verdicts", type=pathlib.Path, nargs="+", default=[])
    arguments = parser.parse_args()
    encodings = json.loads(arguments.encodings.read_text())
    free = free_coordinates(arguments.corpus)
    records = [json.loads(path.read_text()) for path in arguments.records]
    # The report adds up the logs of all 3n widths; of four decimals each is 0.0001 Å.
    all_coordinates = row_of(encodings["rows"], "fixed", None)["cell_nats"] / math.log(1e-4)

    def of_model(rows, model):
        return [row for row in rows if arm(row["model"]) == model]

    runs = [run for record in records for run in record["runs"] if run["lp"] == "automaton"]
    models = compared(runs)
    likelihoods = [one for record in records for one in record["likelihoods"]]
    angstrom = runs[0]["thresholds"][0]["angstrom"]
    print(
        "| encoding | tokens, passes a conformer | nats per volume | valid, % | stereocentres right, % | clashing, % "
        f"| bond error, Å | COV-R, COV-P at {angstrom} Å, % | MAT-R, MAT-P, Å | texts a CPU second |"
    )
    print("|" + " --- |" * 10)
    found = []
    for model, encoding, tokens, name in models:
        row = row_of(encodings["rows"], encoding, tokens)
        nats = [one["nats_per_conformer"] for one in of_model(likelihoods, model)]
        cells, of_models = figures(of_model(runs, model), nats, row["cell_nats"] / all_coordinates * free)
        spent = f"{row['tokens_per_conformer']:.0f}, {row['passes_per_conformer']:.0f}"
        print("| " + " | ".join([name, spent, *cells]) + " |")
        found.append((row, of_models))
    print()
    for column, sign in [("tokens_per_conformer", -1), ("passes_per_conformer", -1), ("rmsd_angstrom", -1)]:
        predicted = [sign * row[column] for row, _ in found]
        agreement = {
            figure: tau(predicted, [figures[figure] for _, figures in found]) for figure in found[0][1]
        }
        print(f"{column}: " + ", ".join(f"tau {value:+.2f} with {figure}" for figure, value in agreement.items()))
    if arguments.verdicts:
        paired(by_molecule(arguments.verdicts), models)


if __name__ == "__main__":
    main()
