"""A table of conformers with planted flaws, and which rows have which flaw, by RDKit alone.

    python flaws.py CONFORMERS.jsonl.gz OUT [--molecules 60] [--seed 0]

Takes every n-th row of CONFORMERS (`embedded_smiles`) and writes OUT/rows.csv, `name,enriched_text,dataset`, with its rows and, of each,
some of: the same text, the text in the other dialect, another spelling in another pose, a copy 0.009 Å and one 0.011 Å away, the mirror
image, one stereo mark turned, atoms on one point, a short and a long bond, a second molecule. OUT/expected.json has, by kind, the
lines of rows with the flaw. A row is a duplicate if a row of the same molecule (canonical SMILES without stereo and isotopes) before
it, which is no duplicate itself, lies within 0.01 Å by `GetBestRMS`. Rows within 1e-6 Å of the bound are listed as doubtful.
"""

import argparse
import csv
import gzip
import json
import pathlib
import re

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolAlign
from rdkit.Geometry import Point3D

BOUND = 0.01
BARE = {"B", "C", "N", "O", "S", "P", "F", "Cl", "Br", "I"} | set("bcnops")
BLOCK = re.compile(r"(\[[^\]]+\])<([^>]*)>")


def read(text):
    """The skeleton and the positions of a text."""
    positions = [[float(x) for x in block.split(",")] for _, block in BLOCK.findall(text)]
    return BLOCK.sub(r"\1<>", text), np.array(positions)


def molecule(skeleton, positions):
    smiles = skeleton.replace("<>", "")
    smiles = re.sub(r"\[([A-Za-z]+)\]", lambda m: m[1] if m[1] in BARE else m[0], smiles)
    mol = Chem.MolFromSmiles(smiles)
    conformer = Chem.Conformer(mol.GetNumAtoms())
    for at, (x, y, z) in enumerate(positions):
        conformer.SetAtomPosition(at, Point3D(x, y, z))
    mol.AddConformer(conformer)
    return mol


def write(skeleton, positions, stripped=False):
    def number(x):
        x = f"{np.trunc(round(x * 1e4, 3)) / 1e4 + 0.0:.4f}".replace("-0.0000", "0.0000")
        return (x.rstrip("0").rstrip(".") or "0") if stripped else x

    blocks = iter(positions)
    return re.sub("<>", lambda _: "<" + ",".join(number(x) for x in next(blocks)) + ">", skeleton)


def rotation(random):
    q, r = np.linalg.qr(random.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def respelled(mol, random):
    """Another spelling of a molecule, and the positions in its order."""
    order = [int(at) for at in random.permutation(mol.GetNumAtoms())]
    mol = Chem.RenumberAtoms(mol, order)
    positions = mol.GetConformer().GetPositions()
    kekule = random.random() < 0.3
    if kekule:
        Chem.Kekulize(mol, clearAromaticFlags=True)
    smiles = Chem.MolToSmiles(mol, canonical=False, kekuleSmiles=kekule)
    out = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    atom = r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]"
    skeleton = re.sub(atom, lambda m: (m[0] if m[0][0] == "[" else f"[{m[0]}]") + "<>", smiles)
    return skeleton, positions[out]


def moved_by(positions, rmsd, random):
    """A copy with this RMSD after alignment."""
    noise = random.normal(size=positions.shape)
    centred = positions - positions.mean(0)

    def aligned(scale):
        other = centred + scale * noise
        other -= other.mean(0)
        u, _, v = np.linalg.svd(centred.T @ other)
        turn = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ v))]) @ v
        return np.sqrt(((other @ turn.T - centred) ** 2).sum(1).mean())

    scale = rmsd
    for _ in range(20):
        scale *= rmsd / aligned(scale)
    return positions + scale * noise


def turned(skeleton, random):
    """The skeleton with one of its stereo marks turned; none if it has no mark."""
    marks = [m.span() for m in re.finditer(r"@+|[/\\]", skeleton)]
    if not marks:
        return None
    start, end = marks[random.integers(len(marks))]
    other = {"@": "@@", "@@": "@", "/": "\\", "\\": "/"}[skeleton[start:end]]
    return skeleton[:start] + other + skeleton[end:]


def planted(text, random):
    """Rows made from one."""
    skeleton, positions = read(text)
    mol = molecule(skeleton, positions)
    atoms, ends = len(positions), [a.GetIdx() for a in mol.GetAtoms() if a.GetDegree() == 1]
    pose = lambda xyz: xyz @ rotation(random).T + random.normal(size=3)
    kinds = random.permutation(11)[:5]
    for kind in kinds:
        xyz = positions.copy()
        if kind == 0:
            yield text
        elif kind == 1:
            yield write(skeleton, positions, stripped=True)
        elif kind == 2:
            other, xyz = respelled(mol, random)
            yield write(other, pose(xyz))
        elif kind in (3, 4):
            yield write(skeleton, pose(moved_by(xyz, 0.009 if kind == 3 else 0.011, random)))
        elif kind == 5:
            yield write(skeleton, xyz * [1, 1, -1])
        elif kind == 6:
            other = turned(skeleton, random)
            if other:
                yield write(other, pose(xyz))
        elif kind == 7 and atoms > 6:
            xyz[atoms - 1] = xyz[0] + [0.05, 0.03, 0]
            yield write(skeleton, xyz)
        elif kind in (8, 9) and ends:
            end = int(random.choice(ends))
            near = mol.GetAtomWithIdx(end).GetNeighbors()[0].GetIdx()
            bond = xyz[end] - xyz[near]
            xyz[end] = xyz[near] + bond / np.linalg.norm(bond) * (0.6 if kind == 8 else 2.8)
            yield write(skeleton, xyz)
        elif kind == 10:
            yield write(skeleton, xyz) + ".[Na+]<9.5000,-8.0000,7.0000>"


def wrong_marks(mol):
    """Whether the marks that RDKit keeps are not those of the coordinates. A molecule that is its mirror image may have either."""
    found = Chem.Mol(mol)
    Chem.AssignAtomChiralTagsFromStructure(found, replaceExistingTags=True)
    for own, other in zip(mol.GetAtoms(), found.GetAtoms()):
        if own.GetChiralTag() == Chem.CHI_UNSPECIFIED:
            other.SetChiralTag(Chem.CHI_UNSPECIFIED)
    placed = Chem.Mol(mol)
    Chem.AssignStereochemistryFrom3D(placed, replaceExistingTags=True)
    for own, other in zip(mol.GetBonds(), placed.GetBonds()):
        if own.GetStereo() > Chem.BondStereo.STEREOANY and own.GetStereo() != other.GetStereo():
            return True
    return Chem.MolToSmiles(Chem.MolFromSmiles(Chem.MolToSmiles(found))) != Chem.MolToSmiles(
        Chem.MolFromSmiles(Chem.MolToSmiles(mol))
    )


def judged(texts):
    """By kind, the indices of rows that have it."""
    flaws = {kind: [] for kind in KINDS}
    doubtful, seen, kept = [], set(), {}
    for at, text in enumerate(texts):
        skeleton, positions = read(text)
        mol = molecule(skeleton, positions)
        key = (skeleton, tuple(np.round(positions.ravel() * 1e4).astype(int)))
        if key in seen:
            flaws["duplicate-text"].append(at)
        seen.add(key)
        plain = Chem.Mol(mol)
        Chem.RemoveStereochemistry(plain)
        [atom.SetIsotope(0) for atom in plain.GetAtoms()]
        others = kept.setdefault(Chem.MolToSmiles(plain), [])
        rmsds = [rdMolAlign.GetBestRMS(Chem.Mol(plain), other) for other in others]
        if any(abs(rmsd - BOUND) < 1e-6 for rmsd in rmsds):
            doubtful.append(at)
        if any(rmsd <= BOUND for rmsd in rmsds):
            flaws["duplicate-conformer"].append(at)
        else:
            others.append(plain)
        distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
        bonds = [distances[b.GetBeginAtomIdx(), b.GetEndAtomIdx()] for b in mol.GetBonds()]
        for kind, is_so in [
            ("coincident-atoms", (distances < 0.1).sum() > len(positions)),
            ("short-bond", any(length < 0.7 for length in bonds)),
            ("long-bond", any(length > 2.5 for length in bonds)),
            ("fragments", len(Chem.GetMolFrags(mol)) > 1),
            ("stereo", wrong_marks(mol)),
        ]:
            if is_so:
                flaws[kind].append(at)
    return flaws, doubtful


KINDS = "duplicate-text duplicate-conformer coincident-atoms short-bond long-bond fragments stereo".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conformers", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--molecules", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    RDLogger.DisableLog("rdApp.*")
    random = np.random.default_rng(options.seed)
    rows = [json.loads(line)["embedded_smiles"] for line in gzip.open(options.conformers, "rt")]
    rows = [rows[int(at)] for at in random.choice(len(rows), min(options.molecules, len(rows)), replace=False)]
    # What is made from a row stands anywhere behind it.
    texts = [(at + random.random() * 5 * made, text) for at, row in enumerate(rows) for made, text in [(0, row), *((1, t) for t in planted(row, random))]]
    texts = [text for _, text in sorted(texts, key=lambda pair: pair[0])]
    flaws, doubtful = judged(texts)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "rows.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["name", "enriched_text", "dataset"])
        for at, text in enumerate(texts):
            table.writerow([f'row "{at}", a', text, ["GEOM", "ZINC", ""][at % 3]])
    lines = {kind: [at + 2 for at in found] for kind, found in flaws.items()}
    expected = {"rows": len(texts), "lines": lines, "doubtful": [at + 2 for at in doubtful]}
    (options.out / "expected.json").write_text(json.dumps(expected))
    print({kind: len(found) for kind, found in flaws.items()}, len(texts), len(doubtful))


main()
