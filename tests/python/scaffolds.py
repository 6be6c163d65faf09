"""Murcko scaffolds by RDKit: SMILES, in a random spelling, and what `MurckoScaffoldSmiles` writes for them.

    python scaffolds.py OUT [--random 300] [--nci 500] [--seed 0] [SMILES-FILE…]

Writes OUT/scaffolds.jsonl, a line {smiles, scaffold} for each molecule; `scaffold` is empty for a molecule without rings. The molecules
are the first of NCI's that RDKit comes with, those of `random_molecules.py`, and those of the files: JSON Lines, also gzip, with
`canonical_smiles`, or the first column of CSV. What RDKit refuses is left out, and so is a molecule whose scaffold it refuses.
"""

import argparse
import csv
import gzip
import json
import pathlib
import random

from rdkit import Chem, RDConfig, RDLogger
from rdkit.Chem.Scaffolds import MurckoScaffold

import random_molecules


def nci(count):
    path = pathlib.Path(RDConfig.RDDataDir) / "NCI" / "first_5K.smi"
    for line in path.read_text().splitlines()[:count]:
        yield Chem.MolFromSmiles(line.split()[0])


def grown(count, draw):
    made = 0
    while made < count:
        molecule = random_molecules.grown(draw)
        if molecule is not None:
            made += 1
            yield Chem.MolFromSmiles(Chem.MolToSmiles(molecule))


def of_file(path):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as lines:
        if path.suffix == ".csv":
            found = {row[0] for row in list(csv.reader(lines))[1:]}
        else:
            found = {json.loads(line)["canonical_smiles"] for line in lines}
    return (Chem.MolFromSmiles(smiles) for smiles in sorted(found))


def spelled(molecule, draw):
    """Any spelling of the molecule: any order of atoms, aromatic or Kekulé."""
    if draw.random() < 0.3:
        molecule = Chem.Mol(molecule)
        Chem.Kekulize(molecule, clearAromaticFlags=True)
        return Chem.MolToSmiles(molecule, doRandom=True, kekuleSmiles=True)
    return Chem.MolToSmiles(molecule, doRandom=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("files", type=pathlib.Path, nargs="*")
    parser.add_argument("--random", type=int, default=300)
    parser.add_argument("--nci", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_intermixed_args()
    RDLogger.DisableLog("rdApp.*")
    draw = random.Random(arguments.seed)
    sources = [nci(arguments.nci), grown(arguments.random, draw)]
    sources += map(of_file, arguments.files)
    with open(arguments.out / "scaffolds.jsonl", "w") as out:
        for molecule in (molecule for source in sources for molecule in source):
            if molecule is None:
                continue
            try:
                smiles = spelled(molecule, draw)
                scaffold = MurckoScaffold.MurckoScaffoldSmiles(smiles)
            except ValueError:
                continue
            out.write(json.dumps({"smiles": smiles, "scaffold": scaffold}) + "\n")


if __name__ == "__main__":
    main()
