"""Molecules of the kinds that readers and matchers go wrong on, made with a seed, and RDKit's word on what became of them.

    python molecules.py rings OUT SEED         conjugated rings that are not aromatic: OUT.sdf, OUT.xyz, each in shuffled orders of atoms
    python molecules.py named OUT SEED         the same SDF, each under the SMILES of its bond-shift isomer
    python molecules.py mapped OUT SEED        SDF under SMILES with all hydrogens written and numbered
    python molecules.py polyhedra OUT SEED     SDF of metals with four to six neighbours, under SMILES that are theirs or not
    python molecules.py doubtful OUT SEED      XYZ with distances between bonded and not bonded
    python molecules.py check TEXTS.jsonl      each text's coordinates on its own SMILES: stereo and double bonds by RDKit
    python molecules.py relabelled OUT SEED    molecules of much symmetry: a conformer, and itself in other orders of equal atoms
    python molecules.py pickles OUT SEED       OUT.pickle as GEOM's users have it, with sub-SMILES; OUT_plain.pkl, SMILES and molecules; OUT_shard.pkl,
                                               generations and statistics; OUT_odd.pickle, with objects of other classes

Each `make` prints how many molecules there are, as JSON, with what is to be expected of each by its name.
"""

import json
import pickle
import random
import re
import sys
from collections import Counter, OrderedDict, defaultdict
from pathlib import PurePosixPath

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem
from rdkit.Geometry import Point3D

RDLogger.DisableLog("rdApp.*")

# Conjugated, and none of their own rings aromatic.
RINGS = [
    "C1=CC=CC=CC=C1",
    "CC1=CC=CC=CC=C1",
    "C1=CC=CN=CC=C1",
    "C1=CC2=CC=CC2=C1",
    "CC1=CC2=CC=CC2=C1",
    "C1=CC2=CC3=CC=CC3=CC2=C1",
    "C1=CC=C2C=CC=CC2=CC=C1",
    "C=C1C=CC=C1",
    "O=C1C=CC(=O)C=C1",
    "C1=CSC=CC=C1",
    "C1=CC=CC2=CC=CC=C12",
    "C1=CN=CC=CN=C1",
    "FC1=CC=CC=CC=C1Cl",
]
# Bond-shift isomers: the same atoms and bonds, double bonds elsewhere.
SHIFTED = [
    ("CC1=C(C)C=CC=CC=C1", "CC1=CC=CC=CC=C1C"),
    ("FC1=C(F)C=CC=CC=C1", "FC1=CC=CC=CC=C1F"),
    ("CC1=C(Cl)C=CC=CC=C1", "CC1=CC=CC=CC=C1Cl"),
    ("CC1=C(C)C(F)=CC=CC=C1", "CC1=CC=CC=CC(F)=C1C"),
    ("C1=CC2=C(C=CC=CC=C2)O1", "C1=CC2=CC=CC=CC=C2O1"),
    ("OC1=C(N)C=CC=CC=C1", "OC1=CC=CC=CC=C1N"),
    ("CC1=C2C=CC=C2C=C1", "CC1=CC=C2C1=CC=C2"),
    ("CC1=C(Br)C=CC=CC=C1", "CC1=CC=CC=CC=C1Br"),
    ("CCC1=C(C)C=CC=CC=C1", "CCC1=CC=CC=CC=C1C"),
    ("CC1=C(O)C=CC=CC=C1", "CC1=CC=CC=CC=C1O"),
]
MAPPED = [
    "C[C@H](N)C(=O)O",
    "C[C@@](F)(Cl)CO",
    "F/C=C/Cl",
    "F/C=C\\CO",
    "O=C1CC[C@H]2CCCC[C@@H]12",
    "C[S@](=O)c1ccccc1",
    "c1cc[nH]c1",
    "C[C@H]1CC[C@@H](C)CC1",
    "CC(=O)[O-].[NH4+]",
    "C/C=C/C=C\\CO",
    "C[C@@H](O)[C@H](N)c1ccc2[nH]ccc2c1",
    "N#CC(=O)/C(C)=C/c1ccco1",
    "[O-][N+](=O)c1ccccc1OC(F)F",
]
DOUBTFUL = [
    "C1C2CC1C2",
    "OC(=O)C12CC(C1)C2",
    "FC12CC(C1)(C2)c1ccccc1",
    "C[Si]1(C)O[Si](C)(C)O1",
    "C[Si]1(C)CC[Si]1(C)C",
    "C1CSC1",
    "S1SCC1",
    "CP1CCC1",
    "C[Si]1(C)N[Si](C)(C)N1",
    "NC12CC(C1)C2",
    "C1CC2CC1C2",
]
# Much symmetry.
SYMMETRIC = [
    "CC(C)(C)C(=O)OCC(COC(=O)C(C)(C)C)(COC(=O)C(C)(C)C)COC(=O)C(C)(C)C",
    "C[Si](C)(C)[Si]([Si](C)(C)C)([Si](C)(C)C)[Si](C)(C)C",
    "FC(F)(F)c1cc(C(F)(F)F)cc([B-](c2cc(C(F)(F)F)cc(C(F)(F)F)c2)(c2cc(C(F)(F)F)cc(C(F)(F)F)c2)c2cc(C(F)(F)F)cc(C(F)(F)F)c2)c1",
    "C1C2CC3CC1CC(C2)C3",
    "C1N2CN3CN1CN(C2)C3",
    "CC12CC3(C)CC(C)(C1)CC(C)(C2)C3",
    "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41",
    "CC(C)(C)c1cc(C(C)(C)C)cc(C(C)(C)C)c1",
    "FS(F)(F)(F)(F)F",
    "C[N+](C)(C)CC[N+](C)(C)C",
]


def embedded(smiles, seed, hydrogens=True):
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    for attempt in range(20):
        if AllChem.EmbedMolecule(molecule, randomSeed=seed + attempt) == 0:
            break
    else:
        AllChem.EmbedMolecule(molecule, randomSeed=seed, useRandomCoords=True)
    if AllChem.MMFFHasAllMoleculeParams(molecule):
        AllChem.MMFFOptimizeMolecule(molecule, maxIters=2000)
    return molecule if hydrogens else Chem.RemoveHs(molecule)


def shuffled(molecule, rng):
    order = list(range(molecule.GetNumAtoms()))
    rng.shuffle(order)
    return Chem.RenumberAtoms(molecule, order)


def xyz(molecule, comment):
    points = molecule.GetConformer().GetPositions()
    rows = [f"{atom.GetSymbol()} {x:.5f} {y:.5f} {z:.5f}" for atom, (x, y, z) in zip(molecule.GetAtoms(), points)]
    return f"{len(rows)}\n{comment}\n" + "\n".join(rows) + "\n"


def write_sdf(path, named):
    writer = Chem.SDWriter(path)
    writer.SetKekulize(True)
    for name, molecule, smiles in named:
        molecule = Chem.Mol(molecule)
        molecule.SetProp("_Name", name)
        molecule.SetProp("smiles", smiles)
        writer.write(molecule)
    writer.close()


def rings(out, rng):
    named, frames = [], []
    for at, smiles in enumerate(RINGS):
        molecule = embedded(smiles, 1 + at)
        for round in range(4):
            other = shuffled(molecule, rng)
            named.append((f"{at}-{round}", other, smiles))
            frames.append(xyz(other, f'smiles={smiles} id={at}-{round}'))
    write_sdf(out + ".sdf", named)
    open(out + ".xyz", "w").write("".join(frames))
    return {name: "same" for name, *_ in named}


def named(out, rng):
    all = []
    for at, pair in enumerate(SHIFTED):
        for side in (0, 1):
            all.append((f"{at}-{side}", shuffled(embedded(pair[side], 1 + at), rng), pair[1 - side]))
    write_sdf(out + ".sdf", all)
    return {name: "other" for name, *_ in all}


def mapped(out, rng):
    all = []
    for at, smiles in enumerate(MAPPED):
        molecule = embedded(smiles, 1 + at)
        for round in range(2):
            other = shuffled(molecule, rng)
            for atom in other.GetAtoms():
                atom.SetAtomMapNum(atom.GetIdx() + 1)
            Chem.AssignStereochemistryFrom3D(other)
            text = Chem.MolToSmiles(other, canonical=False, doRandom=True, allHsExplicit=True)
            for atom in other.GetAtoms():
                atom.SetAtomMapNum(0)
            all.append((f"{at}-{round}", other, text))
    write_sdf(out + ".sdf", all)
    return {name: Chem.CanonSmiles(MAPPED[int(name.split("-")[0])]) for name, *_ in all}


POLYHEDRA = {
    4: [(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0)],
    5: [(0, 0, 1), (0, 0, -1), (1, 0, 0), (-0.5, 0.866, 0), (-0.5, -0.866, 0)],
    6: [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)],
}
CLASS = {4: ("SP", 3), 5: ("TB", 20), 6: ("OH", 30)}


def polyhedra(out, rng):
    all, expected = [], {}
    for at in range(120):
        count = rng.choice([4, 5, 6])
        ligands = [rng.choice(["F", "Cl", "Br", "I"]) for _ in range(count)]
        corners = POLYHEDRA[count][:]
        rng.shuffle(corners)
        turn = np.linalg.qr(np.array([[rng.gauss(0, 1) for _ in range(3)] for _ in range(3)]))[0]
        turn *= np.sign(np.linalg.det(turn))
        block = Chem.RWMol()
        metal = block.AddAtom(Chem.Atom("Pt"))
        conformer = Chem.Conformer(count + 1)
        for ligand, corner in zip(ligands, corners):
            atom = block.AddAtom(Chem.Atom(ligand))
            block.AddBond(metal, atom, Chem.BondType.SINGLE)
            point = turn @ np.array(corner) * 2.2 + np.array([rng.uniform(-0.1, 0.1) for _ in range(3)])
            conformer.SetAtomPosition(atom, Point3D(*point.tolist()))
        block.AddConformer(conformer)
        molecule = block.GetMol()
        molecule.GetConformer().Set3D(True)
        Chem.SanitizeMol(molecule)
        kind, numbers = CLASS[count]
        number = rng.randint(1, numbers)
        smiles = f"{ligands[0]}[Pt@{kind}{number}]" + "".join(f"({ligand})" for ligand in ligands[1:-1]) + ligands[-1]
        asked = Chem.MolFromSmiles(smiles)
        solid = Chem.Mol(molecule)
        Chem.AssignStereochemistryFrom3D(solid)
        name = str(at)
        expected[name] = "same" if is_same_stereo(asked, solid) else "other"
        all.append((name, molecule, smiles))
    write_sdf(out + ".sdf", all)
    return expected


def is_same_stereo(asked, solid):
    """Whether some order of equal ligands gives the permutation of the SMILES: tried by writing the SMILES anew from coordinates."""
    metal = next(atom.GetIdx() for atom in asked.GetAtoms() if atom.GetSymbol() == "Pt")
    plain = Chem.Mol(asked)
    Chem.RemoveStereochemistry(plain)
    tags = (asked.GetAtomWithIdx(metal).GetChiralTag(), asked.GetAtomWithIdx(metal).GetUnsignedProp("_chiralPermutation"))
    bare = Chem.Mol(solid)
    Chem.RemoveStereochemistry(bare)
    for match in bare.GetSubstructMatches(plain, uniquify=False, maxMatches=1000):
        placed = Chem.Mol(plain)
        conformer = Chem.Conformer(placed.GetNumAtoms())
        conformer.Set3D(True)
        for atom, there in enumerate(match):
            conformer.SetAtomPosition(atom, solid.GetConformer().GetAtomPosition(there))
        placed.RemoveAllConformers()
        placed.AddConformer(conformer)
        Chem.AssignStereochemistryFrom3D(placed)
        atom = placed.GetAtomWithIdx(metal)
        if atom.HasProp("_chiralPermutation") and (atom.GetChiralTag(), atom.GetUnsignedProp("_chiralPermutation")) == tags:
            return True
    return False


def doubtful(out, rng):
    frames = []
    for at, smiles in enumerate(DOUBTFUL):
        other = shuffled(embedded(smiles, 1 + at), rng)
        frames.append(xyz(other, f"smiles={smiles} id={at}"))
    # An ion as near to water as to a ligand.
    for at, (symbol, charge) in enumerate([("Mg", 2), ("Ca", 2), ("Zn", 2)]):
        water = embedded("O", 5)
        ion = Chem.MolFromSmiles(f"[{symbol}+{charge}]")
        both = Chem.CombineMols(water, ion)
        both.RemoveAllConformers()
        conformer = Chem.Conformer(both.GetNumAtoms())
        for atom in range(3):
            conformer.SetAtomPosition(atom, water.GetConformer().GetAtomPosition(atom))
        oxygen = np.array(water.GetConformer().GetAtomPosition(0))
        hydrogens = water.GetConformer().GetPositions()[1:].mean(axis=0)
        away = (oxygen - hydrogens) / np.linalg.norm(oxygen - hydrogens)
        conformer.SetAtomPosition(3, Point3D(*(oxygen + 2.05 * away).tolist()))
        both.AddConformer(conformer)
        frames.append(xyz(both, f"smiles=O.[{symbol}+{charge}] id=ion{at}"))
    open(out + ".xyz", "w").write("".join(frames))
    return {str(at): "same" for at in range(len(frames))}


def symmetric(out, rng):
    with open(out + ".jsonl", "w") as rows:
        for at, smiles in enumerate(SYMMETRIC):
            molecule = Chem.MolFromSmiles(smiles)
            points = np.array([[rng.uniform(-4, 4) for _ in range(3)] for _ in range(molecule.GetNumAtoms())])
            # A match and its products with itself: orders of the group without listing it.
            matches = molecule.GetSubstructMatches(molecule, uniquify=False, maxMatches=2000)
            for _ in range(40):
                order = list(range(molecule.GetNumAtoms()))
                for match in rng.sample(matches, min(4, len(matches))):
                    order = [match[atom] for atom in order]
                turned = points[order]
                rows.write(json.dumps({"smiles": smiles, "a": points.tolist(), "b": turned.tolist()}) + "\n")
    return {smiles: "same" for smiles in SYMMETRIC}


# A SMILES that leaves stereo open, as GEOM's keys do, and what its conformers are.
POOLED = {
    "CC(F)CO": ["C[C@H](F)CO", "C[C@@H](F)CO"],
    "CC=CC(N)=O": ["C/C=C/C(N)=O", "C/C=C\\C(N)=O"],
    "CC(O)C(C)Cl": ["C[C@H](O)[C@H](C)Cl", "C[C@@H](O)[C@H](C)Cl", "C[C@H](O)[C@@H](C)Cl"],
}


class Odd:
    """A class that no reader knows."""

    def __init__(self, inside):
        self.inside = inside


def pickles(out, rng):
    pooled, plain = {}, {}
    for at, (key, isomers) in enumerate(POOLED.items()):
        confs = [embedded(isomer, 10 * at + seed, hydrogens=True) for isomer in isomers for seed in range(2)]
        plain[key] = [Chem.RemoveHs(conformer) for conformer in confs]
        # Other counts than there are conformers, so that it shows which of the two a reader takes.
        counts = Counter({Chem.CanonSmiles(isomer): 1 + place for place, isomer in enumerate(isomers)})
        # Counted between the others of the last key, and no isomer of it.
        if len(isomers) == 3:
            counts = Counter({"CCO": 1, **counts})
        pooled[key] = {"confs": confs, "num_confs": len(confs), "sub_smiles_counts": counts, "pickle_path": PurePosixPath("a/b")}
    ordered = OrderedDict(pooled)
    pickle.dump(ordered, open(out + ".pickle", "wb"))
    pickle.dump(plain, open(out + "_plain.pkl", "wb"))
    stats = defaultdict(int, {"passed": 3})
    pickle.dump({"generations": plain, "stats": stats}, open(out + "_shard.pkl", "wb"))
    first = plain["CC(F)CO"][0]
    odd = {"CC(F)CO": [first, first, Odd(first), first], "CC=CC(N)=O": {"confs": plain["CC=CC(N)=O"], "meta": Odd(3)}}
    pickle.dump(odd, open(out + "_odd.pickle", "wb"))
    return {key: str(len(found["confs"])) for key, found in pooled.items()}


def check(path):
    """The texts whose coordinates are not what their SMILES says."""
    bad = []
    for row in map(json.loads, open(path)):
        smiles = row.get("canonical_smiles") or row["smiles"]
        points = [[float(x) for x in block.split(",")] for block in re.findall(r"<([^>]*)>", row["embedded_smiles"])]
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None or molecule.GetNumAtoms() != len(points) or any(a.GetAtomMapNum() for a in molecule.GetAtoms()):
            bad.append([row["id"], smiles, "atoms"])
            continue
        plain = Chem.Mol(molecule)
        conformer = Chem.Conformer(len(points))
        for atom, point in enumerate(points):
            conformer.SetAtomPosition(atom, Point3D(*point))
        plain.AddConformer(conformer)
        for bond in plain.GetBonds():
            both = {bond.GetBeginAtom().GetAtomicNum(), bond.GetEndAtom().GetAtomicNum()}
            length = (conformer.GetAtomPosition(bond.GetBeginAtomIdx()) - conformer.GetAtomPosition(bond.GetEndAtomIdx())).Length()
            limit = 1.41 if both == {6} else None
            if limit and not bond.GetIsAromatic() and bond.GetBondType() != Chem.BondType.TRIPLE:
                if (bond.GetBondType() == Chem.BondType.DOUBLE) != (length < limit):
                    conjugated = bond.GetIsConjugated() and plain.GetRingInfo().NumBondRings(bond.GetIdx())
                    if conjugated:
                        bad.append([row["id"], smiles, f"a {bond.GetBondType()} bond of {length:.3f}"])
        Chem.AssignStereochemistryFrom3D(plain)
        # What the SMILES leaves open may be anything.
        is_open = not set("/\\@") & set(Chem.MolToSmiles(molecule))
        if not is_open and Chem.MolToSmiles(plain) != Chem.MolToSmiles(molecule):
            bad.append([row["id"], smiles, Chem.MolToSmiles(plain)])
    return bad


if __name__ == "__main__":
    command, path, *rest = sys.argv[1:]
    made = {"rings": rings, "named": named, "mapped": mapped, "polyhedra": polyhedra, "doubtful": doubtful, "relabelled": symmetric, "pickles": pickles}
    print(json.dumps(check(path) if command == "check" else made[command](path, random.Random(int(rest[0])))))
