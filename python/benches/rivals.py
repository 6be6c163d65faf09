"""The geometry mask beside what the same price buys without it: rejection by the judge, and resampling.

    python python/benches/rivals.py DRIFT WORK [--relaxed N] OPTIONS

OPTIONS are those of `drift generate` that choose a model and molecules. Under the automaton 16 texts of each molecule are
generated, under `geometry` and under `automaton --resample 4` four. Rows are the automaton alone, `geometry`, `--resample 4`,
and rejection: of K texts the first that the judge calls valid, or the last. Texts and CPU seconds are those that an answer of a
row costs; those of rejection end with its first valid text. Prints a Markdown table:

valid, stereo, bonds   of the judge, in percent; valid with a 95 % interval over molecules (bootstrap)
PB                     answers that pass PoseBusters `mol` without energy, which shares no code with the mask
MAT-P, error           RMSD to the nearest reference, and error of bond lengths, in Å (with references)
torsions               rotatable bonds whose torsion is within 30 degrees of a reference's, in percent (with references)
spread                 RMSD between two valid answers of a molecule, in Å
strain                 median and 90th percentile of GFN2-xTB's energy above the relaxed conformer, in kcal/mol, of the first
                       answers of N molecules

What was generated stays in WORK. It needs RDKit, PoseBusters, and xtb for --relaxed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import posebusters
from molecules import molecule_of, points_of, rows
from rdkit import Chem, RDLogger
from rdkit.Chem import Lipinski, rdMolAlign, rdMolTransforms

RDLogger.DisableLog("rdApp.*")

HERE = Path(__file__).resolve().parents[2]
XTB = f"{sys.executable} {HERE / 'eval/energy/xtb.py'} --relax"
RIVALS, ANSWERS = 16, 4
ROTATABLE = Lipinski.RotatableBondSmarts


@dataclass
class Text:
    """A text with its verdict, and the mean CPU seconds of a text of its run."""

    smiles: str
    cpu_seconds: float
    verdict: dict[str, Any]
    enriched: str
    points: np.ndarray


@dataclass
class Answer:
    """A text that a row gives, and what it cost."""

    text: Text
    texts: int

    @property
    def cpu_seconds(self) -> float:
        """What its texts cost."""
        return self.texts * self.text.cpu_seconds


Row = dict[str, list[Answer]]


def generated(program: str, to: Path, options: list[str]) -> dict[str, list[Text]]:
    """The texts of each molecule in the order of generations. All pass, since the automaton wrote them."""
    verdicts, fixed = to.with_suffix(".verdicts.jsonl"), to.with_suffix(".fixed.jsonl")
    if not fixed.exists():
        run = [program, "generate", "--threads", "1", "--quiet", "-o", str(to), *options]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
        references = ["--references", "small"] if "--corpus" in options else []
        run = [program, "audit", str(to), "--verdicts", str(verdicts), "--quiet", *references]
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
        run = [program, "encode", str(to), "--encoding", "fixed", "-o", str(fixed), "--quiet"]
        subprocess.run(run, check=True, stderr=subprocess.DEVNULL)
    out: dict[str, list[Text]] = {}
    written = [line for line in rows(str(to)) if "text" in line]
    # A line has the time since the text before it ended; texts of a batch end together.
    seconds = sum(line["cpu_seconds"] for line in written) / len(written)
    for line, verdict, row in zip(written, rows(str(verdicts)), rows(str(fixed)), strict=True):
        enriched = row["embedded_smiles"]
        text = Text(line["smiles"], seconds, verdict, enriched, points_of(enriched))
        out.setdefault(line["smiles"], []).append(text)
    return out


def alone(texts: dict[str, list[Text]], count: int) -> Row:
    """The first texts of each molecule as they are."""
    return {smiles: [Answer(text, 1) for text in own[:count]] for smiles, own in texts.items()}


def rejection(texts: dict[str, list[Text]], draws: int) -> Row:
    """Of so many texts the first that is valid, or the last."""
    out: Row = {}
    for smiles, own in texts.items():
        for group in (own[at : at + draws] for at in range(0, len(own), draws)):
            until = next((at for at, text in enumerate(group) if text.verdict["valid"]), len(group) - 1)
            out.setdefault(smiles, []).append(Answer(group[until], until + 1))
    return {smiles: answers[:ANSWERS] for smiles, answers in out.items()}


class Judges:
    """PoseBusters, RDKit and the references, which know nothing of drift's bounds."""

    def __init__(self, references: Path | None) -> None:
        self.busters = posebusters.PoseBusters("mol")
        # Energies need hydrogens, which texts do not have.
        modules = [
            module for module in self.busters.config["modules"] if module["function"] != "energy_ratio"
        ]
        self.busters = posebusters.PoseBusters({**self.busters.config, "modules": modules})
        self.kept: dict[tuple[str, bytes], bool] = {}
        self.torsions_of_references: dict[str, list[list[float]]] = {}
        if references:
            self.read(references)

    def read(self, references: Path) -> None:
        """Keeps the torsions of the references, by the SMILES of the rows."""
        for row in rows(str(references)):
            molecule = molecule_of(row["canonical_smiles"], points_of(row["embedded_smiles"]))
            self.torsions_of_references.setdefault(row["canonical_smiles"], []).append(torsions(molecule))

    def passes(self, text: Text) -> bool:
        """Whether the text passes PoseBusters."""
        key = (text.smiles, text.points.tobytes())
        if key not in self.kept:
            verdict = self.busters.bust([molecule_of(text.smiles, text.points)], None, None)
            self.kept[key] = bool(verdict.all(axis=1).iloc[0])
        return self.kept[key]

    def torsions_right(self, text: Text) -> list[bool]:
        """By torsion, whether a reference has it within 30 degrees."""
        references = self.torsions_of_references.get(text.smiles, [])
        own = torsions(molecule_of(text.smiles, text.points)) if references else []
        near = [
            [abs((one[at] - angle + 180) % 360 - 180) <= 30 for one in references]
            for at, angle in enumerate(own)
        ]
        return [any(one) for one in near]


def torsions(molecule: Chem.Mol) -> list[float]:
    """The torsions around rotatable bonds, each by its first neighbours, in degrees."""
    out = []
    for first, second in molecule.GetSubstructMatches(ROTATABLE):
        ends = [(first, second), (second, first)]
        outer = [
            min(n.GetIdx() for n in molecule.GetAtomWithIdx(a).GetNeighbors() if n.GetIdx() != b)
            for a, b in ends
        ]
        atoms = (outer[0], first, second, outer[1])
        out.append(rdMolTransforms.GetDihedralDeg(molecule.GetConformer(), *atoms))
    return out


def strains(program: str, texts: list[Text], work: Path) -> list[float]:
    """The strain of texts, in kcal/mol; without those for which xtb gives none."""
    source = work / "strain.jsonl"
    asked = [{"smiles": text.smiles, "text": f"[CONFORMER]{text.enriched}[/CONFORMER]"} for text in texts]
    source.write_text("".join(json.dumps(row) + "\n" for row in asked))
    listed = work / "strain.list.jsonl"
    cache = ["--energy-cache", str(work / "energies.cache"), "--energy-list", str(listed)]
    run = [program, "audit", str(source), "--energy", XTB, *cache, "--quiet", "--dialect", "fixed"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL, env=environment)
    known = [line["strain"] for line in rows(str(listed))]
    return [strain for strain in known if strain is not None]


def interval(by_molecule: list[float]) -> tuple[float, float]:
    """A 95 % interval of the mean over molecules."""
    random, values = np.random.default_rng(0), np.array(by_molecule)
    means = values[random.integers(0, len(values), (2000, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def spread(answers: list[Answer]) -> list[float]:
    """RMSDs between the different valid answers of a molecule, in Å."""
    valid = [answer.text for answer in answers if answer.text.verdict["valid"]]
    molecules = [molecule_of(text.smiles, text.points) for text in valid]
    return [rdMolAlign.GetBestRMS(Chem.Mol(a), b) for a, b in itertools.combinations(molecules, 2)]


def mean(values: list[Any]) -> float:
    """The mean of the values that there are."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def share(answers: list[Answer], part: str, of: str) -> float:
    """A share of all marks of the answers, in percent."""
    total = sum(answer.text.verdict[of] for answer in answers)
    return 100 * sum(answer.text.verdict[part] for answer in answers) / total if total else float("nan")


def figure(value: float, decimals: int) -> str:
    """A cell; a dash for what is not known."""
    return "-" if np.isnan(value) else f"{value:.{decimals}f}"


def told(name: str, row: Row, judges: Judges, strained: list[float]) -> str:
    """The row of the table."""
    answers = [answer for own in row.values() for answer in own]
    verdicts = [answer.text.verdict for answer in answers]
    valid = [mean([answer.text.verdict["valid"] for answer in own]) for own in row.values()]
    low, high = interval(valid)
    right = [one for answer in answers for one in judges.torsions_right(answer.text)]
    cells = [
        name,
        f"{mean([answer.texts for answer in answers]):.2f}",
        f"{1000 * mean([answer.cpu_seconds for answer in answers]):.1f}",
        f"{100 * mean(valid):.1f} [{100 * low:.1f}, {100 * high:.1f}]",
        figure(share(answers, "stereocentres_right", "stereocentres"), 1),
        f"{100 * mean([verdict['bad_bonds'] for verdict in verdicts]):.1f}",
        f"{100 * mean([judges.passes(answer.text) for answer in answers]):.1f}",
        figure(mean([verdict["rmsd_angstrom"] for verdict in verdicts]), 3),
        figure(mean([verdict["bond_error_angstrom"] for verdict in verdicts]), 3),
        figure(100 * mean(right), 1),
        figure(mean([one for own in row.values() for one in spread(own)]), 3),
        f"{np.median(strained):.1f}, {np.quantile(strained, 0.9):.1f} ({len(strained)})" if strained else "-",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("work", type=Path)
    parser.add_argument("--relaxed", type=int, default=0)
    arguments, options = parser.parse_known_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    texts = {}
    runs = {
        "automaton": ["--lp", "automaton", "--generations", str(RIVALS)],
        "geometry": ["--lp", "geometry", "--generations", str(ANSWERS)],
        "resample": ["--lp", "automaton", "--generations", str(ANSWERS), "--resample", str(ANSWERS)],
    }
    for name, own in runs.items():
        to = arguments.work / f"{name}.jsonl"
        texts[name] = generated(arguments.program, to, [*options, *own])
    table = {
        "`automaton`": alone(texts["automaton"], ANSWERS),
        "`geometry`": alone(texts["geometry"], ANSWERS),
    }
    table["`automaton --resample 4`"] = alone(texts["resample"], ANSWERS)
    for draws in [2, 4, 8]:
        table[f"the first valid of {draws}"] = rejection(texts["automaton"], draws)
    judges = Judges(HERE / "corpora/small.jsonl.gz" if "--corpus" in options else None)
    titles = "row, texts, CPU ms, valid [95 %], stereo, bonds, PB, MAT-P, error, torsions, spread, strain"
    print("| " + titles.replace(", ", " | ") + " |")
    print("| --- " * len(titles.split(", ")) + "|")
    for name, row in table.items():
        first = [answers[0].text for answers in list(row.values())[: arguments.relaxed]]
        strained = strains(arguments.program, first, arguments.work) if first else []
        print(told(name, row, judges, strained), flush=True)


if __name__ == "__main__":
    main()
