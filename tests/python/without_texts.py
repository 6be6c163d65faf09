"""Coverage and matching where references have molecules without a text, by RDKit and NumPy alone.

    python without_texts.py make FOLDER     writes texts.jsonl and references.jsonl; prints the figures as JSON
    python without_texts.py matrix FILE.npz   prints the numbers of texts and references of each molecule in a matrix

A molecule without a text, or without one that can be compared, counts 0 in COV and is left out of MAT (`zero`), or is left out of all
figures (`leave-out`). Some references are written in another order of atoms than the prompt, and one molecule in two spellings.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem, rdMolAlign
from rdkit.Geometry import Point3D

RDLogger.DisableLog("rdApp.*")

# With texts of both processors, of `a` alone, with a text that does not pass, and without any text.
BOTH = ["CCO", "C[C@H](N)C(=O)O", "c1ccccc1CC", "CC(C)(C)OC"]
OF_A = ["OCC(F)F", "N#CCCO"]
BROKEN = ["CCCN"]
WITHOUT = ["C[C@@H](N)C(=O)O", "CCSC", "C1CCOC1", "CC(=O)NC"]
REFERENCES, TEXTS, THRESHOLD = 4, 3, 0.1
ATOM = re.compile(r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]")


def embedded(smiles, count, seed):
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMultipleConfs(molecule, count, randomSeed=seed)
    assert molecule.GetNumConformers() == count, smiles
    return Chem.RemoveHs(molecule)


def rounded(molecule):
    """Each conformer with the four decimals of a text."""
    out = []
    for conformer in molecule.GetConformers():
        one = Chem.Mol(molecule, False, conformer.GetId())
        positions = np.trunc(one.GetConformer().GetPositions() * 1e4) / 1e4
        for atom, point in enumerate(positions):
            one.GetConformer().SetAtomPosition(atom, Point3D(*map(float, point)))
        out.append(one)
    return out


def written(molecule, root=None):
    smiles = Chem.MolToSmiles(molecule) if root is None else Chem.MolToSmiles(molecule, rootedAtAtom=root, canonical=False)
    order = molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
    points = iter(molecule.GetConformer().GetPositions()[list(order)])

    def atom(match):
        inside = match.group(0).strip("[]")
        return f"[{inside}]<" + ",".join(f"{x:.4f}" for x in next(points)) + ">"

    return ATOM.sub(atom, smiles)


def figures(by_molecule, missing):
    recall, precision, mat_r, mat_p = [], [], [], []
    for references, texts in by_molecule:
        if not texts:
            if missing == "zero":
                recall.append(0.0)
                precision.append(0.0)
            continue
        rmsd = np.array([[rdMolAlign.GetBestRMS(Chem.Mol(a), Chem.Mol(b)) for b in references] for a in texts])
        recall.append((rmsd.min(0) <= THRESHOLD).mean())
        precision.append((rmsd.min(1) <= THRESHOLD).mean())
        mat_r.append(rmsd.min(0).mean())
        mat_p.append(rmsd.min(1).mean())
    means = [float(np.mean(values)) for values in (recall, precision, mat_r, mat_p)]
    medians = [float(np.median(values)) for values in (recall, precision, mat_r, mat_p)]
    return {"molecules": len(recall), "mean": means, "median": medians}


def main(folder):
    lines, references, molecules = [], [], []
    for at, smiles in enumerate(BOTH + OF_A + BROKEN + WITHOUT):
        known = rounded(embedded(smiles, REFERENCES, 7 + at))
        for place, one in enumerate(known):
            # Every second reference starts from the last atom.
            root = one.GetNumAtoms() - 1 if place % 2 else None
            references.append({"embedded_smiles": written(one, root)})
        texts = {"a": [], "b": []}
        processors = {"a": smiles in BOTH + OF_A, "b": smiles in BOTH}
        for lp in (lp for lp, has in processors.items() if has):
            texts[lp] = rounded(embedded(smiles, TEXTS, 100 + 50 * (lp == "b") + at))
            prompt = Chem.MolToSmiles(texts[lp][0])
            for one in texts[lp]:
                lines.append({"smiles": prompt, "lp": lp, "text": f"[CONFORMER]{written(one)}[/CONFORMER]"})
        if smiles in BROKEN:
            lines.append({"smiles": smiles, "lp": "a", "text": "[CONFORMER][C]<1.0000"})
        molecules.append((known, texts))
    folder = Path(folder)
    for name, rows in (("texts.jsonl", lines), ("references.jsonl", references)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = {"without_text": {"total": len(WITHOUT), "a": len(WITHOUT), "b": len(WITHOUT + OF_A + BROKEN)}}
    for missing in ("zero", "leave-out"):
        told[missing] = {
            "total": figures([(known, texts["a"] + texts["b"]) for known, texts in molecules], missing),
            "a": figures([(known, texts["a"]) for known, texts in molecules], missing),
            "b": figures([(known, texts["b"]) for known, texts in molecules], missing),
        }
    print(json.dumps(told))


def matrix(path):
    with np.load(path) as arrays:
        names = ("smiles", "texts", "references")
        rows = list(zip(*(arrays[name].tolist() for name in names), strict=True))
        assert len(arrays["rmsd"]) == sum(texts * references for _, texts, references in rows)
    print(json.dumps(rows))


if __name__ == "__main__":
    {"make": main, "matrix": matrix}[sys.argv[1]](sys.argv[2])
