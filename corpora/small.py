#!/usr/bin/env python3
"""Small molecules with the sizes, elements, rings and stereo of GEOM-QM9: small.jsonl.gz, and what to train on.

    small.py train --out DIR [--molecules N] [--workers 2]     DIR/small-train.jsonl.gz, and its hash in DIR/small-train.json
    small.py test --out DIR [--workers 2]                      DIR/small.jsonl.gz: held-out molecules, with GFN2-xTB (`xtb` in PATH)

Molecules are grown at random: a tree of up to nine atoms of C, N, O and F, or an aromatic ring, then rings, double and triple
bonds; what GDB's rules forbid is dropped. No data set goes in. Training has up to two conformers of each, ETKDGv3 and MMFF94, and
the mirror image of each chiral one with the SMILES of the enantiomer. Held-out molecules are other graphs: none of their graphs
is trained on in any stereoisomer, and none of `--exclude FILE.csv` (SMILES in the first column) in either part.

The frame is that of GEOM (centre of mass at the origin, principal axes on x, y, z); of its four proper orientations the one is
taken in which the first atom has x and y of at least zero.
"""

import argparse
import hashlib
import json
import multiprocessing
import sys
from pathlib import Path

import build
import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem, rdDistGeom, rdMolAlign

SIZES = {4: 1, 5: 2, 6: 4, 7: 11, 8: 22, 9: 60}
RINGS = {0: 10, 1: 33, 2: 34, 3: 19, 4: 6}  # as weights; GEOM-QM9's test molecules have 11, 39, 28, 16, 6 percent
CLOSURES = {2: 28, 3: 30, 4: 28, 5: 12, 6: 2}  # distance of the two atoms that a closure joins: rings of 3 to 7
ELEMENTS = {6: 62, 7: 14, 8: 23.5, 9: 0.5}
UNSATURATION = {0: 18, 1: 37, 2: 29, 3: 16}
AROMATIC = ["c1ccccc1", "c1ccncc1", "c1cncnc1", "c1cnccn1", "c1ccoc1", "c1cc[nH]c1", "c1cnc[nH]1", "c1cc[nH]n1", "c1cocn1", "c1ccon1", "c1nc[nH]n1", "c1nnco1"]
AROMATIC_SHARE = 0.09
ZWITTERION_SHARE = 0.2  # of molecules that have an amine and an acid
ACETAL_SHARE = 0.15  # of molecules with two heteroatoms on one saturated carbon, those that are kept
# What is dropped: bonds between heteroatoms (but those of oximes, amides of hydrazine and aromatic rings), peroxides, aminals and
# acetals of too many heteroatoms, allenes, triple bonds and cumulated double bonds in rings, double bonds in rings of three.
FORBIDDEN = [
    "[#8]-[#8]", "[#7;!a]-[#7;!a]", "[#7;!a;!$(N=C)]-[#8;!a]", "[#9]-[!#6]", "[CX4]([#7,#8,F])([#7,#8,F])[#7,#8,F]", "C=C=*", "N=C=*", "*=N=*",
    "[r]#[r]", "C1=CC1", "C1=NC1", "N1=CO1", "[#7]=[#8]", "[#7]=[#7;!a]", "C=C-[OX2H]", "[NX3;H2]-C=C", "[CX4]([OH])[OH]", "[CX4]([OH])[NX3]",
    "[OX2H]-C=[N;!a]", "[CX4](F)[OH]", "[CX4](F)[NX3]", "C(=O)F", "C(=O)[OX2]C(=O)", "C1(=*)C=C1", "[CH]#[N+]", "[O]=[CH][OX2]C(=O)",
]
DISTINCT_ANGSTROM = 0.3  # two conformers of one molecule are at least so far apart (heavy atoms)
CHUNK = 500
HELD_OUT = 1_500  # molecules that are never trained on; `test` computes the first of them


def weighted(draw, weights):
    keys = list(weights)
    return draw.choices(keys, [weights[key] for key in keys])[0]


class Growth:
    """Random molecules of up to nine heavy atoms."""

    def __init__(self):
        self.aromatic = [Chem.MolFromSmiles(s) for s in AROMATIC]
        self.forbidden = [Chem.MolFromSmarts(s) for s in FORBIDDEN]
        self.acetal = Chem.MolFromSmarts("[CX4]([#7,#8])[#7,#8]")

    def grown(self, draw):
        """One attempt: a neutral molecule without stereo, or None."""
        size = weighted(draw, SIZES)
        if draw.random() < AROMATIC_SHARE and size > 5:
            edit = Chem.RWMol(draw.choice([m for m in self.aromatic if m.GetNumAtoms() <= size]))
            rings = draw.choice([0, 0, 0, 1])
        else:
            edit = Chem.RWMol()
            edit.AddAtom(Chem.Atom(6))
            rings = weighted(draw, RINGS)
        fixed = edit.GetNumAtoms() if edit.GetNumAtoms() > 1 else 0
        while edit.GetNumAtoms() < size:
            at = draw.choice([a.GetIdx() for a in edit.GetAtoms() if self.free(edit, a.GetIdx()) > 0] or [None])
            if at is None:
                return None
            edit.AddBond(at, edit.AddAtom(Chem.Atom(6)), Chem.BondType.SINGLE)
        for _ in range(rings):
            self.close(edit, draw, fixed)
        for atom in list(edit.GetAtoms())[fixed:]:
            element = weighted(draw, ELEMENTS)
            if atom.GetDegree() <= {6: 4, 7: 3, 8: 2, 9: 1}[element]:
                atom.SetAtomicNum(element)
        for _ in range(weighted(draw, UNSATURATION)):
            self.unsaturate(edit, draw)
        mol = self.checked(edit)
        acetal = mol is not None and mol.HasSubstructMatch(self.acetal)
        return None if acetal and draw.random() > ACETAL_SHARE else mol

    def free(self, edit, index):
        """How many further bonds an atom takes."""
        atom = edit.GetAtomWithIdx(index)
        if atom.GetIsAromatic():
            open_carbon = atom.GetAtomicNum() == 6 and atom.GetDegree() == 2
            return 1 if open_carbon else 0
        used = sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds())
        return {6: 4, 7: 3, 8: 2, 9: 1}[atom.GetAtomicNum()] - int(used)

    def close(self, edit, draw, fixed):
        wanted = weighted(draw, CLOSURES)
        distances = Chem.GetDistanceMatrix(edit, force=True)
        pairs = [
            (a, b)
            for a in range(edit.GetNumAtoms())
            for b in range(max(a + 1, fixed), edit.GetNumAtoms())
            if distances[a][b] == wanted and self.free(edit, a) and self.free(edit, b)
        ]
        if pairs:
            edit.AddBond(*draw.choice(pairs), Chem.BondType.SINGLE)

    def unsaturate(self, edit, draw):
        bonds = [
            bond
            for bond in edit.GetBonds()
            if not bond.GetIsAromatic()
            and bond.GetBondType() != Chem.BondType.TRIPLE
            and self.free(edit, bond.GetBeginAtomIdx()) > 0
            and self.free(edit, bond.GetEndAtomIdx()) > 0
        ]
        if not bonds:
            return
        bond = draw.choice(bonds)
        # A carbonyl rather than an alkene, a nitrile or alkyne where the end has room.
        polar = [b for b in bonds if {b.GetBeginAtom().GetAtomicNum(), b.GetEndAtom().GetAtomicNum()} & {7, 8}]
        if polar and draw.random() < 0.5:
            bond = draw.choice(polar)
        triple = self.free(edit, bond.GetBeginAtomIdx()) > 1 and self.free(edit, bond.GetEndAtomIdx()) > 1 and draw.random() < 0.75
        double = bond.GetBondType() == Chem.BondType.DOUBLE
        bond.SetBondType(Chem.BondType.TRIPLE if triple or double else Chem.BondType.DOUBLE)

    def checked(self, edit):
        mol = edit.GetMol()
        if Chem.SanitizeMol(mol, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
            return None
        mol = Chem.MolFromSmiles(Chem.MolToSmiles(mol))
        if mol is None or any(mol.HasSubstructMatch(pattern) for pattern in self.forbidden):
            return None
        # No double bond where rings meet (Bredt).
        bridgeheads = {a for ring in mol.GetRingInfo().AtomRings() for a in ring if mol.GetRingInfo().NumAtomRings(a) > 1}
        for bond in mol.GetBonds():
            if bond.GetBondType() == Chem.BondType.DOUBLE and {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()} & bridgeheads:
                return None
        return mol

    def charged(self, mol):
        """The zwitterion of an amino acid, or None."""
        amine = Chem.MolFromSmarts("[NX3;!$(N-[#6]=*);!$(N~a)]")
        acid = Chem.MolFromSmarts("[CX3](=O)[OX2H1]")
        nitrogen, oxygen = mol.GetSubstructMatch(amine), mol.GetSubstructMatch(acid)
        if not nitrogen or not oxygen:
            return None
        edit = Chem.RWMol(mol)
        head, tail = edit.GetAtomWithIdx(nitrogen[0]), edit.GetAtomWithIdx(oxygen[2])
        head.SetNumExplicitHs(head.GetTotalNumHs() + 1)
        head.SetNoImplicit(True)
        head.SetFormalCharge(1)
        tail.SetFormalCharge(-1)
        new = edit.GetMol()
        if Chem.SanitizeMol(new, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
            return None
        return Chem.MolFromSmiles(Chem.MolToSmiles(new))


def molecules(task):
    """Molecules of some attempts: {SMILES without stereo: SMILES}."""
    part, start = task
    growth, found = Growth(), {}
    RDLogger.DisableLog("rdApp.*")
    for attempt in range(start, start + CHUNK):
        draw = build.rng("small", part, attempt)
        mol = growth.grown(draw)
        if mol is None:
            continue
        if draw.random() < ZWITTERION_SHARE:
            mol = growth.charged(mol) or mol
        smiles = build.with_stereo(mol, draw)
        if smiles:
            found.setdefault(build.flat(smiles), smiles)
    return found


def embedded(smiles, count):
    """The molecule with hydrogens and up to `count` conformers, ETKDGv3 and MMFF94, that keep the SMILES; None if there is none."""
    RDLogger.DisableLog("rdApp.*")
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = build.rng("embed", smiles).randrange(1, 2**31 - 1)
    parameters.useSmallRingTorsions = True
    parameters.maxIterations = 10
    try:
        if not AllChem.MMFFHasAllMoleculeParams(mol) or not rdDistGeom.EmbedMultipleConfs(mol, count, parameters):
            return None
        energies = AllChem.MMFFOptimizeMoleculeConfs(mol, maxIters=500)
    except RuntimeError:  # an optimiser of RDKit that gave up on a cage
        return None
    for conformer, (status, _) in zip(list(mol.GetConformers()), energies):
        if status != 0:
            mol.RemoveConformer(conformer.GetId())
    return mol if mol.GetNumConformers() else None


def distinct(mol, most):
    """The first conformers of which no two are alike, as ids."""
    heavy = Chem.RemoveHs(mol)
    kept = []
    for conformer in heavy.GetConformers():
        number = conformer.GetId()
        if all(rdMolAlign.GetBestRMS(Chem.Mol(heavy), heavy, number, other, maxMatches=1000) >= DISTINCT_ANGSTROM for other in kept):
            kept.append(number)
        if len(kept) == most:
            break
    return kept


def frame(masses, xyz, first):
    """GEOM's frame, turned so that atom `first` has x and y of at least zero; of a mirror image, too, a proper rotation."""
    xyz = build.frame(masses, xyz, build.rng("axes"))
    x, y = (1.0 if abs(value) < 1e-4 or value > 0 else -1.0 for value in xyz[first][:2])
    return xyz * np.array([x, y, x * y])


def with_conformers(mol, geometries):
    """The molecule with these geometries alone, `[atoms, 3]` each."""
    mol = Chem.Mol(mol)
    mol.RemoveAllConformers()
    for positions in geometries:
        conformer = Chem.Conformer(mol.GetNumAtoms())
        conformer.SetPositions(np.ascontiguousarray(positions))
        mol.AddConformer(conformer, assignId=True)
    return mol


def row(mol, positions, smiles):
    """The text of one geometry, or None where its SMILES is another."""
    mol = with_conformers(mol, [positions])
    Chem.AssignStereochemistryFrom3D(mol)
    text, order = build.heavy_atoms(mol)
    if text != smiles:
        return None
    masses = np.array([a.GetMass() for a in mol.GetAtoms()])
    return {"canonical_smiles": smiles, "embedded_smiles": build.enriched(smiles, frame(masses, positions, order[0])[order])}


def mirrored(smiles):
    """The SMILES of the enantiomer, or None where it is the same molecule."""
    mol = Chem.MolFromSmiles(smiles)
    for atom in mol.GetAtoms():
        if atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED:
            atom.InvertChirality()
    other = build.canonical(Chem.MolToSmiles(mol))
    return other if other and other != smiles else None


def train_rows(smiles):
    mol = embedded(smiles, 2)
    if mol is None:
        return []
    other, rows = mirrored(smiles), []
    for number in distinct(mol, 2):
        xyz = mol.GetConformer(number).GetPositions()
        rows.append(row(mol, xyz, smiles))
        if other:
            rows.append(row(mol, xyz * np.array([1.0, 1.0, -1.0]), other))
    return [r for r in rows if r]


def test_rows(smiles):
    """Up to six conformers, each optimised by GFN2-xTB; what xTB turns into another molecule is left out."""
    mol = embedded(smiles, 12)
    if mol is None:
        return []
    symbols = [a.GetSymbol() for a in mol.GetAtoms()]
    found = []
    for number in distinct(mol, 6):
        result = build.xtb(symbols, mol.GetConformer(number).GetPositions(), Chem.GetFormalCharge(mol), "normal", 200, 1.0)
        # One that ran out of cycles, or whose bonds or stereo changed, is no reference.
        if result is not None and result[3] and not build.same_molecule(mol, result[0], smiles):
            found.append(result[0])
    kept = with_conformers(mol, found)
    rows = [row(kept, kept.GetConformer(number).GetPositions(), smiles) for number in distinct(kept, 6)]
    return [r for r in rows if r]


def grown(pool, part, wanted, without):
    """So many molecules, each with another graph, in an order that depends on the seed alone."""
    found, start = {}, 0
    while len(found) < wanted * 1.02:
        tasks = [(part, start + k * CHUNK) for k in range(32)]
        for some in pool.imap(molecules, tasks):
            for key, smiles in some.items():
                if key not in without:
                    found.setdefault(key, smiles)
        start += len(tasks) * CHUNK
        print(f"{len(found)} molecules of {start} attempts", file=sys.stderr, flush=True)
    smiles = [found[key] for key in sorted(found)]
    build.rng("small order", part).shuffle(smiles)
    return smiles[:wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["train", "test"])
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--molecules", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--exclude", type=Path, help="molecules to leave out: a CSV with SMILES in its first column")
    arguments = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    # Now, not when all is computed: it fails where there is no xtb.
    versions = build.versions(xtb=arguments.part == "test")
    without, excluded = set(), None
    if arguments.exclude:
        excluded = {"name": arguments.exclude.name, "sha256": hashlib.sha256(arguments.exclude.read_bytes()).hexdigest()}
        without = build.graphs(arguments.exclude)
    count = arguments.molecules or {"train": 80_000, "test": 600}[arguments.part]
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        held_out = grown(pool, "test", HELD_OUT, without)
        if arguments.part == "test":
            smiles = held_out[:count]
        else:
            without.update(build.flat(smiles) for smiles in held_out)
            smiles = grown(pool, "train", count, without)
        rows, done = [], 0
        for some in pool.imap(train_rows if arguments.part == "train" else test_rows, smiles, chunksize=16):
            rows.extend(some)
            done += 1
            if done % 1000 == 0:
                print(f"{done} of {len(smiles)} molecules, {len(rows)} conformers", file=sys.stderr, flush=True)
    name = "small" if arguments.part == "test" else "small-train"
    rows = [{"id": f"{name}-{k:06d}", **r} for k, r in enumerate(rows)]
    data, text = build.write_rows(arguments.out / f"{name}.jsonl.gz", rows)
    about = {
        "command": f"corpora/small.py {arguments.part} --molecules {count}",
        "seed": build.SEED,
        "excluded": excluded,
        "molecules": len({r["canonical_smiles"] for r in rows}),
        "conformers": len(rows),
        "file": {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
        "sha256": hashlib.sha256(text).hexdigest(),
        "versions": versions,
    }
    build.write_whole(arguments.out / f"{name}.json", (json.dumps(about, indent=1) + "\n").encode())
    print(json.dumps(about), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
