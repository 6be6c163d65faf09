"""Least RMSD of pairs of conformers by RDKit and spyrmsd: python rmsd_peer.py CONFORMERS.jsonl[.gz] [SPYRMSD_PAIRS]

Reads 3DMolGen's JSONL, pairs each two conformers of one molecule that follow one another, and prints a JSON object a line: SMILES, the two
conformers in Å, RDKit's GetBestRMS and the seconds that it took; of the first pairs also spyrmsd's, which is slower by far.
"""

import gzip
import json
import re
import sys
from time import perf_counter

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolAlign
from rdkit.Geometry import Point3D

RDLogger.DisableLog("rdApp.*")


def molecules(path):
    opened = gzip.open if path.endswith(".gz") else open
    found = {}
    with opened(path, "rt") as lines:
        for row in map(json.loads, lines):
            points = [[float(x) for x in block.split(",")] for block in re.findall(r"<([^>]*)>", row["embedded_smiles"])]
            found.setdefault(row["canonical_smiles"], []).append(points)
    return found


def placed(molecule, points):
    molecule = Chem.Mol(molecule)
    conformer = Chem.Conformer(molecule.GetNumAtoms())
    for atom, point in enumerate(points):
        conformer.SetAtomPosition(atom, Point3D(*point))
    molecule.AddConformer(conformer)
    return molecule


def by_spyrmsd(molecule, a, b):
    from spyrmsd.rmsd import symmrmsd

    numbers = np.array([atom.GetAtomicNum() for atom in molecule.GetAtoms()])
    adjacency = Chem.GetAdjacencyMatrix(molecule)
    points = [np.array(conformer) for conformer in (a, b)]
    centred = [conformer - conformer.mean(axis=0) for conformer in points]
    began = perf_counter()
    symmrmsd(*centred, numbers, numbers, adjacency, adjacency, minimize=True, center=True)
    return perf_counter() - began


def main(path, spyrmsd="0"):
    left = int(spyrmsd)
    for smiles, conformers in molecules(path).items():
        molecule = Chem.MolFromSmiles(smiles)
        for a, b in zip(conformers, conformers[1:]):
            first, second = placed(molecule, a), placed(molecule, b)
            began = perf_counter()
            rmsd = rdMolAlign.GetBestRMS(first, second)
            row = {"smiles": smiles, "a": a, "b": b, "rmsd": rmsd, "seconds": perf_counter() - began}
            if left > 0:
                row["spyrmsd_seconds"] = by_spyrmsd(molecule, a, b)
                left -= 1
            print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
