#!/usr/bin/env python3
"""More molecules, with force-field geometries, to train checkpoints on: training.jsonl.gz.

    more.py --out DIR [--molecules N] [--workers 2]

The building blocks, reactions, text and frame of build.py, without xTB: one ETKDGv3 conformer each, then MMFF94. No
molecule of the embedded corpus is among them, in no stereoisomer. Everything is seeded; each molecule depends on the
seed and its SMILES alone.
"""

import argparse
import gzip
import json
import multiprocessing
import sys
from pathlib import Path

import build
import numpy as np
from rdkit import Chem
from rdkit.Chem import AllChem, rdDistGeom

ROUTES = 60_000
CHUNK = 500
LARGEST = 34  # heavy atoms; build.py's corpus has the larger ones


def routes(start):
    """Neutral molecules and some of their ions along some routes, as SMILES with stereo."""
    chemistry = build.Chemistry()
    found = {}
    for route in range(start, start + CHUNK):
        draw = build.rng("more", route)
        mol = draw.choice(chemistry.blocks)
        for _ in range(draw.choice([1, 2, 2, 3, 3, 4])):
            new = chemistry.step(mol, draw)
            if new is None or new.GetNumHeavyAtoms() > LARGEST:
                break
            mol = new
            if mol.GetNumHeavyAtoms() < 8 or Chem.GetFormalCharge(mol) != 0 or not chemistry.finished(mol):
                continue
            kept = chemistry.charged(mol, draw) if draw.random() < build.CHARGED_SHARE else mol
            smiles = build.with_stereo(kept or mol, draw)
            if smiles:
                found.setdefault(build.flat(smiles), smiles)
    return found


def conformer(smiles):
    """The row of a molecule, or None where no geometry is found."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = build.rng("embed", smiles).randrange(1, 2**31 - 1)
    parameters.maxIterations = 20
    if rdDistGeom.EmbedMolecule(mol, parameters) < 0:
        return None
    optimise = AllChem.MMFFOptimizeMolecule if AllChem.MMFFHasAllMoleculeParams(mol) else AllChem.UFFOptimizeMolecule
    optimise(mol, maxIters=200)
    masses = np.array([a.GetMass() for a in mol.GetAtoms()])
    xyz = build.frame(masses, mol.GetConformer().GetPositions(), build.rng("axes", smiles))
    text, order = build.heavy_atoms(mol)
    return {"canonical_smiles": smiles, "embedded_smiles": build.enriched(smiles, xyz[order])} if text == smiles else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--molecules", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with gzip.open(build.HERE / "default.jsonl.gz", "rt") as rows:
        known = {build.flat(json.loads(row)["canonical_smiles"]) for row in rows}
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        found = {}
        for some in pool.imap(routes, range(0, ROUTES, CHUNK)):
            for key, smiles in some.items():
                found.setdefault(key, smiles)
            print(f"{len(found)} molecules", file=sys.stderr, flush=True)
        smiles = [found[key] for key in sorted(found) if key not in known]
        build.rng("order").shuffle(smiles)
        smiles = smiles[: arguments.molecules]
        (Path(arguments.out) / "training.smi").write_text("".join(f"{s}\n" for s in smiles))
        rows = []
        for row in pool.imap(conformer, smiles, chunksize=16):
            if row:
                rows.append({"id": f"more-{len(rows):05d}", **row})
            if len(rows) % 500 == 0:
                print(f"{len(rows)} of {len(smiles)} conformers", file=sys.stderr, flush=True)
    build.write_rows(Path(arguments.out) / "training.jsonl.gz", rows)
    print(f"{len(rows)} conformers of {len(smiles)} molecules", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
