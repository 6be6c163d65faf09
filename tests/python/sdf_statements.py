"""Writes SDF records with random statements beyond atoms and bonds, and what RDKit makes of each.

    python sdf_statements.py OUT [--count N] [--seed S]

OUT/statements.sdf has the records, each with RDKit's SMILES as its data item; OUT/expected.jsonl has a line a record: its kind, and
whether it is `taken`, a `drawing`, or `refused` because it is a query. Records whose bonds have no order are read by RDKit but have
no text. Needs RDKit.
"""

import argparse
import json
import pathlib
import random

from rdkit import Chem, RDLogger
from rdkit.Chem import rdDepictor, rdDistGeom

RDLogger.DisableLog("rdApp.*")

MOLECULES = (
    "CCO c1ccccc1O C[C@H](N)C(=O)O c1cc[nH]c1 Cc1ccc(Cl)cc1 CC(=O)Oc1ccccc1C(=O)O C/C=C/C O=C1CCCN1 c1ccc2[nH]ccc2c1 "
    "CC#N NCCN OB(O)c1ccccc1 O=S(=O)(C)C FC(F)F c1ccncc1 BrCCBr CP(C)C"
).split()
QUERY_BONDS = (0, 5, 6, 7, 8, 11)


def embedded(draw):
    """A conformer without hydrogens."""
    molecule = Chem.AddHs(Chem.MolFromSmiles(draw.choice(MOLECULES)))
    rdDistGeom.EmbedMolecule(molecule, randomSeed=draw.randrange(1 << 30))
    return Chem.RemoveHs(molecule)


def block_of(molecule, v3000, **more):
    """The mol block in one of the two versions."""
    return Chem.MolToV3KMolBlock(molecule, **more) if v3000 else Chem.MolToMolBlock(molecule, **more)


def with_code(block, code):
    """The block with another dimension code."""
    lines = block.split("\n")
    lines[1] = (lines[1].ljust(22)[:20] + code).rstrip()
    return "\n".join(lines)


def flattened(molecule, height):
    """The molecule with every z set."""
    molecule = Chem.Mol(molecule)
    conformer = molecule.GetConformer()
    for atom in range(molecule.GetNumAtoms()):
        x, y, _ = conformer.GetAtomPosition(atom)
        conformer.SetAtomPosition(atom, (x, y, height))
    return molecule


def drawing(molecule, v3000, draw):
    """A drawing or a flattened conformer, with any code."""
    code = draw.choice(["2D", "  ", "3D"])
    if draw.random() < 0.5:
        return with_code(block_of(flattened(molecule, 0.0), v3000), code)
    molecule = Chem.Mol(molecule)
    rdDepictor.Compute2DCoords(molecule)
    return with_code(block_of(molecule, v3000), code)


def aromatic(molecule, v3000, _):
    """Aromatic bonds, and the hydrogens of their nitrogens in a data group."""
    block = block_of(molecule, v3000, kekulize=False)
    atoms = [
        atom.GetIdx() + 1
        for atom in molecule.GetAtoms()
        if (atom.GetAtomicNum(), atom.GetIsAromatic()) == (7, True) and atom.GetTotalNumHs() == 1
    ]
    if not atoms:
        return block
    if v3000:
        group = f"M  V30 1 DAT 1 ATOMS=(1 {atoms[0]}) FIELDNAME=MRV_IMPLICIT_H FIELDDATA=IMPL_H1"
        group = f"M  V30 BEGIN SGROUP\n{group}\nM  V30 END SGROUP\n"
        counts = f"COUNTS {molecule.GetNumAtoms()} {molecule.GetNumBonds()} "
        block = block.replace(f"{counts}0", f"{counts}1")
        return block.replace("M  V30 END CTAB", f"{group}M  V30 END CTAB")
    lines = ["M  STY  1   1 DAT", f"M  SAL   1  1{atoms[0]:4}", "M  SDT   1 MRV_IMPLICIT_H", "M  SED   1 IMPL_H1", "M  END"]
    return block.replace("M  END", "\n".join(lines))


def hydrogens_and_charges(molecule, _, draw):
    """Lines that set charges, hydrogens, isotopes and bond orders."""
    lines = []
    for _ in range(draw.randint(1, 3)):
        atom = draw.randint(1, molecule.GetNumAtoms())
        kind = draw.choice(["HYD", "ZCH", "CHG", "ISO", "ZBO"])
        value = {"HYD": (-1, 0, 1, 2), "ZCH": (-1, 0, 1), "CHG": (-1, 1), "ISO": (13, 15), "ZBO": (0, 1, 2)}[kind]
        number = draw.randint(1, molecule.GetNumBonds()) if kind == "ZBO" else atom
        lines.append(f"M  {kind}  1{number:4}{draw.choice(value):4}")
    return block_of(molecule, False).replace("M  END", "\n".join([*lines, "M  END"]))


def restrictions(molecule, v3000, draw):
    """Restrictions of queries, which leave the molecule as it is."""
    atom = draw.randint(1, molecule.GetNumAtoms())
    block = block_of(molecule, v3000)
    if not v3000:
        kind = draw.choice(["SUB", "RBC", "UNS", "APO"])
        return block.replace("M  END", f"M  {kind}  1{atom:4}   1\nM  END")
    lines = block.split("\n")
    at = next(at for at, line in enumerate(lines) if "BEGIN ATOM" in line) + atom
    lines[at] += draw.choice([" HCOUNT=1", " HCOUNT=-1", " UNSAT=1", " RBCNT=2", " SUBST=1", " ATTCHPT=1"])
    return "\n".join(lines)


def query_atom(molecule, _, draw):
    """A list of elements, an R group or a SMARTS pattern."""
    atom = draw.randint(1, molecule.GetNumAtoms())
    line = draw.choice([f"M  ALS {atom:3}  2 F C   N   ", f"M  RGP  1{atom:4}   1", f"M  MRV SMA {atom:3} [C,N]"])
    return block_of(molecule, False).replace("M  END", f"{line}\nM  END")


def query_bond(molecule, v3000, draw):
    """A bond type without an order."""
    lines = block_of(molecule, v3000).split("\n")
    bond, kind = draw.randrange(molecule.GetNumBonds()), draw.choice(QUERY_BONDS)
    if v3000:
        at = next(at for at, line in enumerate(lines) if "BEGIN BOND" in line) + 1 + bond
        fields = lines[at].split()
        lines[at] = " ".join(["M  V30", fields[2], str(kind), *fields[4:]])
    else:
        at = 4 + molecule.GetNumAtoms() + bond
        lines[at] = f"{lines[at][:6]}{kind:3}{lines[at][9:]}"
    return "\n".join(lines)


KINDS = (drawing, aromatic, hydrogens_and_charges, restrictions, query_atom, query_bond)


def main():
    """Writes the records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    arguments.out.mkdir(exist_ok=True)
    written = 0
    with open(arguments.out / "statements.sdf", "w") as sdf, open(arguments.out / "expected.jsonl", "w") as expected:
        while written < arguments.count:
            kind = draw.choice(KINDS)
            block = kind(embedded(draw), draw.random() < 0.5, draw)
            molecule = Chem.MolFromMolBlock(block)
            if molecule is None:
                continue
            smiles = Chem.MolToSmiles(molecule)
            # A text has no sign for radicals and for bonds of order zero.
            is_expressible = "~" not in smiles and all(atom.GetNumRadicalElectrons() == 0 for atom in molecule.GetAtoms())
            if kind in (query_atom, query_bond) or not is_expressible:
                verdict = "refused"
            else:
                verdict = "taken" if molecule.GetConformer().Is3D() else "drawing"
            sdf.write(f"{block.rstrip()}\n>  <smiles>\n{smiles}\n\n$$$$\n")
            expected.write(json.dumps({"kind": kind.__name__, "smiles": smiles, "verdict": verdict}) + "\n")
            written += 1


main()
