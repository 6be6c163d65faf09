#!/usr/bin/env python3
"""The table of eval/README.md in which models differ in nothing but the encoding they write.

    eval/by_encoding.py RECORD.json ENCODINGS.json CORPUS.jsonl.gz

RECORD.json is what `drift eval --likelihood` wrote of the six models of `eval/train.sh OUT by-…`, ENCODINGS.json what `drift encodings --json`
says of CORPUS, the molecules of both. Nats of two encodings compare only per volume: a text says in which cell a coordinate lies, and the
log of the cell's width in Å is added for each coordinate. The first atoms span the frame, so six coordinates are 0 in every text; the
other 3n - 6 count. Prints Markdown, and how far the order by a column of `drift encodings` is that of the models (Kendall's tau).
"""

import gzip
import itertools
import json
import math
import pathlib
import sys

# The model, its encoding's name and tokens a block in the report of `drift encodings`, and how the table calls it.
MODELS = [
    ("by-fixed", "fixed", None, "`fixed`, tokens of the base"),
    ("by-separate", "fixed", 11, "`fixed`, 11 tokens a block"),
    ("by-fused", "fixed", 9, "`fixed`, 9 tokens a block"),
    ("by-two", "fixed-2", 7, "`fixed-2`, 7 tokens a block"),
    ("by-bins", "binned-v2:-9.525,9.525,0.05", 4, "bins of 0.05 Å, 4 tokens a block"),
    ("by-uniform", "uniform-256", 4, "256 bins of 0.075 Å, 4 tokens a block"),
]


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


def share(value, interval):
    return f"{100 * value:.1f} [{100 * interval['low']:.1f}, {100 * interval['high']:.1f}]"


def tau(one, other):
    """Kendall's tau of two orders; pairs that tie in either do not count."""
    agree = against = 0
    for a, b in itertools.combinations(range(len(one)), 2):
        product = (one[a] - one[b]) * (other[a] - other[b])
        agree, against = agree + (product > 0), against + (product < 0)
    return (agree - against) / max(1, agree + against)


def main():
    record, encodings = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
    free = free_coordinates(sys.argv[3])
    # The report adds up the logs of all 3n widths; of four decimals each is 0.0001 Å.
    all_coordinates = row_of(encodings["rows"], "fixed", None)["cell_nats"] / math.log(1e-4)
    runs = {run["model"]: run for run in record["runs"] if run["lp"] == "automaton"}
    nats = {one["model"]: one["nats_per_conformer"] for one in record["likelihoods"]}
    print(
        "| encoding | tokens, passes a conformer | nats per volume | valid, % | stereocentres right, % | clashing, % "
        "| bond error, Å | COV-R, COV-P at 0.75 Å, % | MAT-R, MAT-P, Å |"
    )
    print("|" + " --- |" * 9)
    found = []
    for model, encoding, tokens, name in MODELS:
        row, run = row_of(encodings["rows"], encoding, tokens), runs[model]
        text, intervals, geometry = nats[model], run["chemistry_intervals"], run["geometry"]
        cells = row["cell_nats"] / all_coordinates * free
        density = text["mean"] + cells
        coverage, error = run["thresholds"][0], geometry["bond_length_error_angstrom"]
        valid = run["valid"] / run["samples"]
        stereo = run["stereocentres_right"] / run["stereocentres"]
        print(
            f"| {name} | {row['tokens_per_conformer']:.0f}, {row['passes_per_conformer']:.0f} "
            f"| {density:.1f} [{text['interval']['low'] + cells:.1f}, {text['interval']['high'] + cells:.1f}] "
            f"| {share(valid, intervals['valid'])} | {share(stereo, intervals['stereocentres_right'])} "
            f"| {100 * run['clashing'] / run['samples']:.1f} "
            f"| {error['mean']:.3f} [{error['interval']['low']:.3f}, {error['interval']['high']:.3f}] "
            f"| {100 * coverage['cov_r']['mean']:.1f}, {100 * coverage['cov_p']['mean']:.1f} "
            f"| {run['mat_r']['mean']:.3f}, {run['mat_p']['mean']:.3f} |"
        )
        found.append((row, {"nats": -density, "valid": valid, "MAT-P": -run["mat_p"]["mean"]}))
    print()
    for column, sign in [("tokens_per_conformer", -1), ("passes_per_conformer", -1), ("rmsd_angstrom", -1)]:
        predicted = [sign * row[column] for row, _ in found]
        agreement = {
            figure: tau(predicted, [figures[figure] for _, figures in found]) for figure in found[0][1]
        }
        print(f"{column}: " + ", ".join(f"tau {value:+.2f} with {figure}" for figure, value in agreement.items()))


if __name__ == "__main__":
    main()
