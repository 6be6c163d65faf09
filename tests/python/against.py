"""Two corpora that share molecules and geometries, and which pairs they share, by RDKit alone.

    python against.py OUT [--rows 10000] [--others 1000] [--seed 0]

Writes OUT/train.jsonl and OUT/test.jsonl, enriched text in any spelling of the SMILES, Kekulé structures too, in any pose, and
OUT/expected.json: every pair of rows whose molecules have one canonical SMILES without stereo and isotopes and whose `GetBestRMS` is
within 1e-3 Å, measured one by one; those beyond it whose mirror image is; the rows of shared molecules, without and with stereo and
isotopes. Rows are noisy copies of few geometries, so that deviations lie on both sides of the bound. A third of the rows has isotope
labels at random atoms, deuterium among them. Pairs within 1e-6 Å of the bound are listed as doubtful.
"""

import argparse
import json
import pathlib
import re

import numpy as np
from rdkit import Chem
from rdkit.Chem import AllChem, rdMolAlign
from rdkit.Geometry import Point3D

BOUND = 1e-3
MOLECULES = """C CO CCO CC(C)(C)C FC(F)(F)c1ccccc1 CC(=O)[O-] NS(=O)(=O)c1ccc(C)cc1 C[C@H](N)C(=O)O C[C@@H](N)C(=O)O
C[C@H](O)[C@@H](C)O C[C@H]1CC[C@@H](C)CC1 C[C@@H]1CC[C@@H](C)CC1 F/C=C/Cl F/C=C\\Cl c1ccc2[nH]ccc2c1 O=c1cc[nH]cc1
CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O CN1C=NC2=C1C(=O)N(C)C(=O)N2C C[N+](C)(C)CC([O-])=O OCC(O)CO c1ccc(cc1)-c1ccccc1 C1CC1 ClCCl
[O-][N+](=O)c1ccccc1 CS(=O)(=O)c1ccccc1 C[S@](=O)c1ccccc1 OP(=O)(O)OC N#Cc1ccccc1 [Na+].[O-]C=O C/C(=N\\O)c1ccccc1""".split()
ATOM = re.compile(r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]")


def geometries(smiles, count, seed):
    """A molecule without needless hydrogens, and some of its geometries."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    found = list(AllChem.EmbedMultipleConfs(mol, count, randomSeed=seed))
    assert found, smiles
    positions = [mol.GetConformer(at).GetPositions() for at in found]
    bare = Chem.RemoveHs(mol)
    heavy = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() > 1]
    bare.RemoveAllConformers()
    return bare, [place[heavy] for place in positions]


def with_positions(mol, positions):
    mol = Chem.Mol(mol)
    mol.RemoveAllConformers()
    conformer = Chem.Conformer(mol.GetNumAtoms())
    for at, (x, y, z) in enumerate(positions):
        conformer.SetAtomPosition(at, Point3D(x, y, z))
    mol.AddConformer(conformer)
    return mol


def rotation(random):
    q, r = np.linalg.qr(random.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def text(mol, random):
    """A spelling of the molecule with blocks, and the positions that stand there, in its order."""
    mol = Chem.RenumberAtoms(
        mol, [int(at) for at in random.permutation(mol.GetNumAtoms())]
    )
    positions = mol.GetConformer().GetPositions()
    kekule = random.random() < 0.3
    if kekule:
        Chem.Kekulize(mol, clearAromaticFlags=True)
    smiles = Chem.MolToSmiles(mol, canonical=False, kekuleSmiles=kekule)
    order = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    places = iter(np.trunc(positions[order] * 1e4) / 1e4 + 0.0)

    def block(match):
        atom = match.group()
        atom = atom if atom[0] == "[" else f"[{atom}]"
        return (
            atom
            + "<"
            + ",".join(f"{x:.4f}" for x in next(places)).replace("-0.0000", "0.0000")
            + ">"
        )

    return smiles, ATOM.sub(block, smiles)


def labelled(mol, random):
    """The molecule with labels at random atoms, or as it is."""
    if random.random() < 0.2:
        mol = Chem.Mol(mol)
        for atom in random.choice(mol.GetNumAtoms(), int(random.integers(1, 3))):
            atom = mol.GetAtomWithIdx(int(atom))
            atom.SetIsotope({6: 13, 7: 15, 8: 18}.get(atom.GetAtomicNum(), 0))
    if random.random() < 0.15:
        whole = Chem.AddHs(mol, addCoords=True)
        hydrogens = [a for a in whole.GetAtoms() if a.GetAtomicNum() == 1]
        for atom in random.permutation(len(hydrogens))[: int(random.integers(1, 4))]:
            hydrogens[int(atom)].SetIsotope(2)
        mol = Chem.RemoveHs(whole)
    return mol


def unlabelled(mol):
    """The molecule without labels, as drift compares it."""
    mol = Chem.Mol(mol)
    for atom in mol.GetAtoms():
        atom.SetIsotope(0)
    return Chem.RemoveHs(mol)


def row(mol, positions, random):
    """A line, and its molecule as the text has it."""
    noise = random.choice([0.0, 2e-4, 5e-4, 8e-4, 1e-3, 1.5e-3, 4e-3])
    positions = positions + random.normal(size=positions.shape) * noise / np.sqrt(3)
    if random.random() < 0.25:
        positions = positions * [-1, 1, 1]
        mol = with_positions(mol, positions)
        if any(
            atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED
            for atom in mol.GetAtoms()
        ):
            for atom in mol.GetAtoms():
                atom.InvertChirality()
            Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    positions = positions @ rotation(random).T + random.normal(size=3)
    mol = labelled(with_positions(mol, positions), random)
    smiles, enriched = text(mol, random)
    blocks = re.findall(r"<([^>]*)>", enriched)
    return {"embedded_smiles": enriched}, with_positions(
        Chem.MolFromSmiles(smiles),
        [[float(x) for x in block.split(",")] for block in blocks],
    )


def mirrored(mol):
    return with_positions(mol, mol.GetConformer().GetPositions() * [-1, 1, 1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("out", type=pathlib.Path)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--others", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0)
    options = options.parse_args()
    random = np.random.default_rng(options.seed)
    known = [geometries(smiles, 3, options.seed + 1) for smiles in MOLECULES]

    def corpus(count, left_out):
        rows = []
        for _ in range(count):
            at = int(random.integers(len(known)))
            while at % 7 == left_out:
                at = int(random.integers(len(known)))
            mol, places = known[at]
            rows.append(row(mol, places[int(random.integers(len(places)))], random))
        return rows

    train, test = corpus(options.rows, 3), corpus(options.others, 5)
    plain = lambda mol: Chem.MolToSmiles(unlabelled(mol), isomericSmiles=False)
    bare = [unlabelled(mol) for _, mol in test]
    by_molecule, isomers = {}, {Chem.MolToSmiles(mol) for _, mol in test}
    for at, (_, mol) in enumerate(test):
        by_molecule.setdefault(plain(mol), []).append(at)
    expected = {
        "pairs": [],
        "mirror_pairs": [],
        "doubtful": [],
        "molecules": [],
        "isomers": [],
    }
    for at, (_, mol) in enumerate(train):
        others = by_molecule.get(plain(mol), [])
        expected["molecules"] += [at] if others else []
        expected["isomers"] += [at] if Chem.MolToSmiles(mol) in isomers else []
        # GetBestRMS moves what it compares: stereo of the SMILES must not keep equal atoms from one another.
        own = unlabelled(mol)
        for other in others:
            theirs = bare[other]
            least = rdMolAlign.GetBestRMS(Chem.Mol(own), Chem.Mol(theirs))
            mirror = rdMolAlign.GetBestRMS(mirrored(own), Chem.Mol(theirs))
            if min(abs(least - BOUND), abs(mirror - BOUND)) < 1e-6:
                expected["doubtful"].append([at, other])
            elif least < BOUND:
                expected["pairs"].append([at, other, least])
            elif mirror < BOUND:
                expected["mirror_pairs"].append([at, other, mirror])
    for name, rows in [("train", train), ("test", test)]:
        lines = "".join(json.dumps(line) + "\n" for line, _ in rows)
        (options.out / f"{name}.jsonl").write_text(lines)
    (options.out / "expected.json").write_text(json.dumps(expected))
    print({name: len(found) for name, found in expected.items()})


main()
