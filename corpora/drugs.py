#!/usr/bin/env python3
"""Drug-like molecules spread as in GEOM-Drugs, to train models on: drugs-train.jsonl.gz, and drugs-test.jsonl.gz with other scaffolds.

    drugs.py --work DIR [--molecules N] [--workers 2]     compute, resumable; the files, and DIR/drugs.json with their hashes

1. Molecules are made from the building blocks and reactions of `build.py` and `drug_blocks.py`, more than are wanted.
2. Some are chosen so that their sizes, rings, rotors, stereocentres, charges and elements are spread as in GEOM-Drugs (`SPREAD`).
3. Each gets one to three conformers, ETKDGv3 and MMFF94, and the mirror image of each chiral one the SMILES of the enantiomer. Test
   molecules get up to six conformers, and no mirror images; no molecule that is trained on has the scaffold of one of them.

A molecule depends on the seed and its index alone. Each part is a file in DIR, written under another name first, so a stopped run goes
on where it was, and any number of workers gives the same bytes. What takes longer than a time limit is left out, and counted.

No graph of the corpora built into drift is in either part, in no stereoisomer, and none of `--exclude FILE` (repeatable: a CSV with
SMILES in its first column, or JSONL).
"""

import argparse
import hashlib
import json
import math
import multiprocessing
import sys
from pathlib import Path

import build
import drug_blocks
import numpy as np
import small
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem, rdDistGeom, rdMolDescriptors
from rdkit.Chem.Scaffolds import MurckoScaffold

ROUTES = 1.8  # routes for each molecule that is wanted; a route gives about 1.3 molecules
STEPS = [1, 1, 2, 2, 2, 3, 3]
SMALLEST, LARGEST = 8, 60  # heavy atoms
CHARGED_SHARE = 0.13
CHUNK_ROUTES = 500
CHUNK_MOLECULES = 100
RAKINGS = 30
TEST_MOLECULES = 450
TEST_SCAFFOLD = 4  # molecules of a scaffold in the test part at most
CONFORMERS = {1: 80, 2: 14, 3: 6}  # as weights; of molecules with few rotors always one
FEW_ROTORS = 2
TEST_CONFORMERS = 6
TRIES, RANDOM_TRIES = 5, 3  # attempts of an embedding, and then from random coordinates
LIMIT_SECONDS = 30  # of an embedding; it takes 0.03 on average
# After 60 steps a bond differs by 0.004 Å on average from its length after convergence, which takes three times as long.
STEPS_MMFF, TEST_STEPS_MMFF = 60, 400
BUILT_IN = ["default.jsonl.gz", "small.jsonl.gz"]

# Percent of the molecules of GEOM-Drugs' test set as GeoMol published it (1,000 SMILES): facts to be met, by property and level.
SPREAD = {
    "heavy atoms": {6: 0.1, 9: 0.5, 12: 1.9, 15: 4.8, 18: 13.8, 21: 19.2, 24: 21.8, 27: 18.9, 30: 11.9, 33: 5.2, 36: 1.3, 39: 0.3, 42: 0.3},
    "rings": {0: 0.5, 1: 5.1, 2: 22.1, 3: 43.9, 4: 22.2, 5: 5.3, 6: 0.9},
    "aromatic rings": {0: 2.0, 1: 16.4, 2: 41.8, 3: 31.7, 4: 7.0, 5: 1.1},
    "aromatic heterocycles": {0: 34.3, 1: 44.0, 2: 18.0, 3: 3.7},
    "rotatable bonds": {0: 0.9, 1: 4.5, 2: 10.6, 3: 11.7, 4: 17.7, 5: 18.2, 6: 14.9, 7: 9.2, 8: 5.3, 9: 4.2, 10: 2.8},
    "stereocentres": {0: 70.1, 1: 22.1, 2: 4.2, 3: 1.2, 4: 2.4},
    "stereo double bonds": {0: 87.3, 1: 11.5, 2: 1.2},
    "formal charge": {-1: 0.2, 0: 94.5, 1: 5.3},
    "charged atoms": {0: 88.6, 1: 11.4},
    "tenths of sp3 carbon": {0: 12.7, 1: 18.1, 2: 21.9, 3: 19.2, 4: 13.8, 5: 8.6, 6: 3.2, 7: 2.5},
    "N": {0: 2.2, 1: 13.9, 2: 26.5, 3: 28.3, 4: 16.9, 5: 7.3, 6: 3.8, 7: 1.1},
    "O": {0: 5.3, 1: 13.9, 2: 21.1, 3: 25.7, 4: 19.3, 5: 9.6, 6: 3.4, 7: 1.7},
    "S": {0: 54.2, 1: 37.1, 2: 8.0, 3: 0.7},
    "F": {0: 88.0, 1: 8.1, 2: 1.5, 3: 2.4},
    "Cl": {0: 85.3, 1: 12.2, 2: 2.5},
    "Br": {0: 96.4, 1: 3.6},
    "P": {0: 99.3, 1: 0.7},
    "I": {0: 99.9, 1: 0.1},
    "amide": {0: 40.0, 1: 60.0},
    "sulfonamide": {0: 85.7, 1: 14.3},
    "ester": {0: 84.3, 1: 15.7},
    "nitro": {0: 94.5, 1: 5.5},
}
GROUPS = {"amide": "C(=O)[NX3]", "sulfonamide": "S(=O)(=O)N", "ester": "C(=O)O[#6]", "nitro": "[N+](=O)[O-]"}
# Also of build.py's recipe, what is not finished or nobody keeps.
UNFINISHED = ["P[Cl,Br]", "[CX4][Cl]", "[NX3H2]-[NX3]", "[CX3H1](=O)[OX2H1]", "[CX4]([OH])[NX3]", "C(=O)[CX4]C(=O)[OX2H1]", "[NX2]=[NX2]"]


def levels(mol):
    """The level of each property of `SPREAD`."""
    symbols = [atom.GetSymbol() for atom in mol.GetAtoms()]
    charges = [atom.GetFormalCharge() for atom in mol.GetAtoms()]
    values = {
        "heavy atoms": len(symbols) // 3 * 3,
        "rings": rdMolDescriptors.CalcNumRings(mol),
        "aromatic rings": rdMolDescriptors.CalcNumAromaticRings(mol),
        "aromatic heterocycles": rdMolDescriptors.CalcNumAromaticHeterocycles(mol),
        "rotatable bonds": rdMolDescriptors.CalcNumRotatableBonds(mol),
        "stereocentres": len(Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False)),
        "stereo double bonds": sum(bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in mol.GetBonds()),
        "formal charge": sum(charges),
        "charged atoms": int(any(charges)),
        "tenths of sp3 carbon": int(rdMolDescriptors.CalcFractionCSP3(mol) * 10),
        **{element: symbols.count(element) for element in ["N", "O", "S", "F", "Cl", "Br", "P", "I"]},
        **{name: int(mol.HasSubstructMatch(pattern)) for name, pattern in PATTERNS.items()},
    }
    return {name: min(max(value, min(SPREAD[name])), max(SPREAD[name])) for name, value in values.items()}


PATTERNS = {name: Chem.MolFromSmarts(smarts) for name, smarts in GROUPS.items()}


# ---------------------------------------------------------------- molecules

_chemistry = None


def chemistry():
    """The blocks and reactions, made once in each process."""
    global _chemistry
    if _chemistry is None:
        _chemistry = build.Chemistry(drug_blocks.blocks(), build.REACTIONS + drug_blocks.REACTIONS)
        _chemistry.unfinished += [Chem.MolFromSmarts(smarts) for smarts in UNFINISHED]
    return _chemistry


def described(mol, draw):
    """A finished molecule as a row of the pool, some of them as ions, with stereo; or None."""
    if not SMALLEST <= mol.GetNumHeavyAtoms() <= LARGEST or not chemistry().finished(mol):
        return None
    kept = chemistry().charged(mol, draw) if draw.random() < CHARGED_SHARE else mol
    smiles = build.with_stereo(kept or mol, draw)
    if smiles is None or "." in smiles:
        return None
    mol = Chem.MolFromSmiles(smiles)
    scaffold = MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=False) or smiles
    return {"smiles": smiles, "graph": build.flat(smiles), "scaffold": scaffold, "levels": levels(mol)}


def pool_rows(first, last):
    """The molecules along these routes."""
    rows = []
    for route in range(first, last):
        draw = build.rng("drugs", route)
        mol = draw.choice(chemistry().blocks)
        for _ in range(draw.choice(STEPS)):
            mol = chemistry().step(mol, draw)
            if mol is None or mol.GetNumHeavyAtoms() > LARGEST:
                break
            row = described(mol, draw)
            if row:
                rows.append(row)
    return rows


def raked(pool):
    """A weight for each row of the pool, so that each property is spread as `SPREAD` says."""
    weights = np.ones(len(pool))
    for _ in range(RAKINGS):
        for name, spread in SPREAD.items():
            of_rows = np.array([row["levels"][name] for row in pool])
            found = {level: weights[of_rows == level].sum() for level in spread}
            wanted = sum(share for level, share in spread.items() if found[level])
            for level, share in spread.items():
                if found[level]:
                    weights[of_rows == level] *= share / wanted * weights.sum() / found[level]
            # No molecule is wanted so much that it stands for all of its level.
            weights = np.minimum(weights, 30 * weights.mean())
    return weights


def chosen(pool, count):
    """So many rows of the pool, drawn by weight, in the order of the draw."""
    weights = raked(pool)
    # Sampling without replacement by exponential keys (Efraimidis and Spirakis).
    keys = [-math.log(1 - build.rng("drugs choice", row["smiles"]).random()) / weight for row, weight in zip(pool, weights, strict=True)]
    return [pool[at] for at in sorted(range(len(pool)), key=lambda at: (keys[at], at))[:count]]


def split(rows, wanted):
    """Training and test molecules: whole scaffolds, of few molecules each, go into the test part."""
    by_scaffold = {}
    for row in rows:
        by_scaffold.setdefault(row["scaffold"], []).append(row["smiles"])
    held_out, molecules = set(), 0
    for scaffold in sorted(by_scaffold, key=lambda text: hashlib.sha256(text.encode()).digest()):
        if molecules < wanted and len(by_scaffold[scaffold]) <= TEST_SCAFFOLD:
            held_out.add(scaffold)
            molecules += len(by_scaffold[scaffold])
    train, test = ([row["smiles"] for row in rows if (row["scaffold"] in held_out) == part] for part in (False, True))
    return train, test


# ---------------------------------------------------------------- conformers


def embedded(smiles, count, steps):
    """The molecule with hydrogens and conformers as MMFF94 leaves them after so many steps, or why there are none."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    if not AllChem.MMFFHasAllMoleculeParams(mol):
        return "no MMFF94 parameters"
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = build.rng("embed", smiles).randrange(1, 2**31 - 1)
    parameters.numThreads = 1
    parameters.timeout = LIMIT_SECONDS
    parameters.trackFailures = True
    for parameters.maxIterations, parameters.useRandomCoords in [(TRIES, False), (RANDOM_TRIES, True)]:
        # At the time limit RDKit returns the number -1 instead of none, so the conformers themselves are counted.
        rdDistGeom.EmbedMultipleConfs(mol, count, parameters)
        if mol.GetNumConformers():
            break
    else:
        failures = parameters.GetFailureCounts()
        return "time limit" if failures[int(rdDistGeom.EmbedFailureCauses.EXCEEDED_TIMEOUT)] else "no embedding"
    try:
        AllChem.MMFFOptimizeMoleculeConfs(mol, numThreads=1, maxIters=steps)
    except RuntimeError:  # an optimiser of RDKit that gave up on a cage
        return "MMFF94 failed"
    return mol


def train_rows(smiles):
    """The rows of a molecule, and of its enantiomer; or why there are none."""
    draw = build.rng("drugs conformers", smiles)
    count = small.weighted(draw, CONFORMERS)
    if rdMolDescriptors.CalcNumRotatableBonds(Chem.MolFromSmiles(smiles)) <= FEW_ROTORS:
        count = 1
    mol = embedded(smiles, count, STEPS_MMFF)
    if isinstance(mol, str):
        return mol
    other, rows = small.mirrored(smiles), []
    for conformer in mol.GetConformers():
        xyz = conformer.GetPositions()
        rows.append(small.row(mol, xyz, smiles))
        if other:
            rows.append(small.row(mol, xyz * np.array([1.0, 1.0, -1.0]), other))
    return [row for row in rows if row] or "another stereoisomer"


def test_rows(smiles):
    mol = embedded(smiles, TEST_CONFORMERS, TEST_STEPS_MMFF)
    if isinstance(mol, str):
        return mol
    rows = [small.row(mol, mol.GetConformer(number).GetPositions(), smiles) for number in small.distinct(mol, TEST_CONFORMERS)]
    return [row for row in rows if row] or "another stereoisomer"


# ---------------------------------------------------------------- the parts of a run


def pool_chunk(task):
    _, first, last = task
    return pool_rows(first, last)


def conformer_chunk(task):
    """The rows of some molecules, and how many have none, by reason."""
    part, smiles = task
    rows, without = [], {}
    for text in smiles:
        found = (train_rows if part == "train" else test_rows)(text)
        if isinstance(found, str):
            without[found] = without.get(found, 0) + 1
        else:
            rows.extend(found)
    return {"rows": rows, "without": without}


def written(task):
    """Computes one part and writes it, unless it is there; its path."""
    path, compute, argument = task
    path = Path(path)
    if not path.exists():
        # Two workers never write one part, so the name of the temporary file is free.
        build.write_whole(path, json.dumps(compute(argument), separators=(",", ":")).encode())
    return path


def parts(workers, tasks, what):
    """The contents of all parts, in the order of the tasks; those that are there are read."""
    missing = [task for task in tasks if not Path(task[0]).exists()]
    for number, _ in enumerate(workers.imap_unordered(written, missing), 1):
        print(f"{what}: {len(tasks) - len(missing) + number} of {len(tasks)} parts", file=sys.stderr, flush=True)
    return [json.loads(Path(task[0]).read_text()) for task in tasks]


def start_worker(nice):
    build.start_worker(nice)
    RDLogger.DisableLog("rdApp.*")


def settings(arguments, excluded):
    chemistry_of = [drug_blocks.blocks(), build.REACTIONS, drug_blocks.REACTIONS, build.UNFINISHED, UNFINISHED, build.CHARGES, SPREAD]
    return {
        "seed": build.SEED,
        "molecules": arguments.molecules,
        "test_molecules": arguments.test_molecules,
        "routes": [ROUTES, STEPS, SMALLEST, LARGEST, CHARGED_SHARE],
        "parts": [CHUNK_ROUTES, arguments.part],
        "conformers": [CONFORMERS, FEW_ROTORS, TEST_CONFORMERS, TRIES, RANDOM_TRIES, LIMIT_SECONDS, STEPS_MMFF, TEST_STEPS_MMFF],
        "excluded": excluded,
        "chemistry_sha256": hashlib.sha256(json.dumps(chemistry_of).encode()).hexdigest(),
        "versions": build.versions(xtb=False),
    }


def check_recipe(work, wanted):
    """Keeps the settings in the folder; refuses a folder that has others."""
    path = work / "recipe.json"
    work.mkdir(parents=True, exist_ok=True)
    wanted = json.loads(json.dumps(wanted))
    if path.exists() and json.loads(path.read_text()) != wanted:
        raise SystemExit(f"{path} was made by another recipe: use another folder")
    build.write_whole(path, json.dumps(wanted).encode())


def molecules(work, workers, arguments, without):
    """Training and test molecules, kept in the folder."""
    path = work / "molecules.json"
    if path.exists():
        return json.loads(path.read_text())
    routes = round(ROUTES * arguments.molecules)
    starts = range(0, routes, CHUNK_ROUTES)
    tasks = [(str(work / f"pool-{k:05d}.json"), pool_chunk, ("pool", at, min(at + CHUNK_ROUTES, routes))) for k, at in enumerate(starts)]
    pool, seen, left_out = [], set(), 0
    for rows in parts(workers, tasks, "molecules"):
        for row in rows:
            if row["graph"] in without:
                left_out += 1
            elif row["graph"] not in seen:
                seen.add(row["graph"])
                pool.append(row)
    rows = chosen(pool, arguments.molecules)
    train, test = split(rows, arguments.test_molecules)
    spread = {name: [[row["levels"][name] for row in rows].count(level) for level in SPREAD[name]] for name in SPREAD}
    kept = {"pool": len(pool), "left_out_as_excluded": left_out, "spread": spread, "train": train, "test": test}
    build.write_whole(path, json.dumps(kept).encode())
    return kept


def table(kept):
    """How the chosen molecules are spread, in percent, beside GEOM-Drugs."""
    total = len(kept["train"]) + len(kept["test"])
    lines = []
    for name, spread in SPREAD.items():
        here = [f"{100 * count / total:.1f}" for count in kept["spread"][name]]
        for head, what, values in [(name, "level", spread), ("", "GEOM-Drugs", spread.values()), ("", "here", here)]:
            lines.append(f"{head:22} {what:10}" + "".join(f"{value:>7}" for value in values))
    return "\n".join(lines)


def write_part(work, workers, part, smiles, size):
    """The corpus of one part, and what the manifest says of it."""
    starts = range(0, len(smiles), size)
    tasks = [(str(work / f"{part}-{k:05d}.json"), conformer_chunk, (part, smiles[at : at + size])) for k, at in enumerate(starts)]
    rows, without = [], {}
    for chunk in parts(workers, tasks, f"conformers, {part}"):
        rows.extend(chunk["rows"])
        for reason, count in chunk["without"].items():
            without[reason] = without.get(reason, 0) + count
    rows = [{"id": f"drugs-{part}-{number:06d}", **row} for number, row in enumerate(rows)]
    name = f"drugs-{part}.jsonl.gz"
    data, text = build.write_rows(work / name, rows)
    return {
        "name": name,
        "molecules": len(smiles),
        "molecules_without_conformer": dict(sorted(without.items())),
        "molecules_with_mirror_images": len({row["canonical_smiles"] for row in rows}),
        "conformers": len(rows),
        "bytes": len(data),
        "bytes_unpacked": len(text),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--molecules", type=int, default=100_000, help="of both parts")
    parser.add_argument("--test-molecules", type=int, default=TEST_MOLECULES)
    parser.add_argument("--exclude", type=Path, action="append", default=[], help="molecules to leave out: CSV with SMILES first, or JSONL")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--nice", type=int, default=10)
    parser.add_argument("--part", type=int, default=CHUNK_MOLECULES, help="molecules that are written at once")
    arguments = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    paths = [*(build.HERE / name for name in BUILT_IN), *arguments.exclude]
    excluded = [{"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in paths]
    about = settings(arguments, excluded)
    check_recipe(arguments.work, about)
    without = set().union(*(build.graphs(path) for path in paths))
    with multiprocessing.get_context("spawn").Pool(arguments.workers, start_worker, (arguments.nice,)) as workers:
        kept = molecules(arguments.work, workers, arguments, without)
        print(table(kept))
        files = [write_part(arguments.work, workers, part, kept[part], arguments.part) for part in ("train", "test")]
    options = "".join(f" --exclude {path.name}" for path in arguments.exclude)
    manifest = {
        "name": "drugs",
        "licence": "MIT OR Apache-2.0",
        "origin": "own work: molecules from the building blocks and reactions in build.py and drug_blocks.py; no data set",
        "command": f"corpora/drugs.py --work WORK --molecules {arguments.molecules}{options}",
        "settings": about,
        "pool": {"molecules": kept["pool"], "left_out_as_excluded": kept["left_out_as_excluded"]},
        "spread": {name: dict(zip(map(str, SPREAD[name]), counts, strict=True)) for name, counts in kept["spread"].items()},
        "files": files,
    }
    build.write_whole(arguments.work / "drugs.json", (json.dumps(manifest, indent=1) + "\n").encode())
    for file in files:
        print(f"{file['conformers']} conformers of {file['molecules']} molecules, {file['bytes']} bytes, {file['sha256']}")


if __name__ == "__main__":
    sys.exit(main())
