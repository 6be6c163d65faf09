"""Coverage and matching by the rule of 3DMolGen's run_eval, re-implemented with RDKit alone.

    python run_eval.py make CORPUS.jsonl[.gz] FOLDER MOLECULES   texts.jsonl, references.jsonl, sizes; prints the figures as JSON
    python run_eval.py compare FOLDER MATRIX.pickle MATRIX.npz   prints how far the matrices are from those of `make`

What is followed, in YerevaNN/3DMolGen, commit 04edf7b: `process_batch` of evaluation/inference.py for which texts become molecules,
`decode_cartesian_v2` for how they are read, `_best_rmsd`, `compute_rmsd_matrix`, `covmat_metrics` and `summarize_metrics` for the figures:
molecules without a generated conformer are left out, pairs are measured by GetBestRMS, isomers are pooled under one key.
"""

import gzip
import json
import pickle
import re
import sys
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import rdMolAlign
from rdkit.Geometry import Point3D

RDLogger.DisableLog("rdApp.*")

ATOM = re.compile(r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]")
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
THRESHOLDS = np.arange(0.05, 3.05, 0.05)
REFERENCES, TEXTS = 3, 7


def read(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def points_of(text):
    return np.array([[float(x) for x in block.split(",")] for block in re.findall(r"<([^>]*)>", text)])


def written(smiles, points):
    rows = iter(points)

    def atom(match):
        inside = match.group(0).strip("[]")
        shown = match.group(0) if match.group(0).startswith("[") else f"[{inside}]"
        return shown + "<{:.4f},{:.4f},{:.4f}>".format(*next(rows))

    return ATOM.sub(atom, smiles)


def with_points(molecule, points):
    molecule = Chem.Mol(molecule)
    molecule.RemoveAllConformers()
    conformer = Chem.Conformer(molecule.GetNumAtoms())
    for at, point in enumerate(points):
        conformer.SetAtomPosition(at, Point3D(*map(float, point)))
    molecule.AddConformer(conformer)
    return molecule


def graph(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    return molecule and Chem.MolToSmiles(molecule, isomericSmiles=False)


def generated(prompt, text):
    """The molecule that their inference makes of a text; None where it fails."""
    between = re.search(r"\[CONFORMER\](.*?)\[/CONFORMER\]", text)
    if not between or not between.group(1):
        return None
    blocks = re.findall(r"<([^>]*)>", between.group(1))
    smiles = re.sub(r"\[(Br|Cl|[BCNOPSFIbcnops])\]", r"\1", re.sub(r"<[^>]*>", "", between.group(1)))
    if graph(smiles) != graph(prompt):
        return None
    molecule = Chem.MolFromSmiles(smiles)
    parts = [[NUMBER.findall(part) for part in block.split(",")] for block in blocks]
    if any(len(block) != 3 or not all(block) for block in parts) or len(parts) != molecule.GetNumAtoms():
        return None
    return with_points(molecule, [[float(part[-1]) for part in block] for block in parts])


def spoilt(kind, molecule, smiles, points):
    """A text of a model, good or one of the ways in which texts fail."""
    if kind == "order":
        other = Chem.MolToSmiles(molecule, doRandom=True)
        order = list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
        return f"[CONFORMER]{written(other, points[order])}[/CONFORMER]"
    text = written(smiles, points)
    return {
        "good": f"[CONFORMER]{text}[/CONFORMER]",
        "cut": f"[CONFORMER]{text[: len(text) // 2]}",
        "number": "[CONFORMER]" + re.sub(r",[^,>]*>", ">", text, count=1) + "[/CONFORMER]",
        "junk": "[CONFORMER]" + text.replace(">", "abra>", 1) + "[/CONFORMER]",
        "other": "[CONFORMER]" + text + "[C]<9.0000,9.0000,9.0000>[/CONFORMER]",
    }[kind]


def inverted(molecule):
    other = Chem.Mol(molecule)
    for atom in other.GetAtoms():
        atom.InvertChirality()
    return other


def isomers(smiles):
    """The SMILES of a key of GEOM, and the isomers that it pools: for a chiral molecule both hands."""
    molecule = Chem.MolFromSmiles(smiles)
    if "@" not in smiles:
        return smiles, [(smiles, molecule, 1.0)]
    mirrored = Chem.MolToSmiles(inverted(molecule))
    # Its own atoms in the order of its SMILES.
    return Chem.MolToSmiles(molecule, isomericSmiles=False), [(smiles, molecule, 1.0), (mirrored, None, -1.0)]


def make(corpus, folder, count):
    random = np.random.default_rng(3)
    by_smiles = {}
    for row in read(corpus):
        by_smiles.setdefault(row["canonical_smiles"], points_of(row["embedded_smiles"]))
    texts, references, matrices, missing = [], [], {}, 0
    for at, (smiles, points) in enumerate(list(by_smiles.items())[:count]):
        key, members = isomers(smiles)
        true, probes = [], []
        for own, molecule, hand in members:
            if molecule is None:
                base = inverted(Chem.MolFromSmiles(smiles))
                own = Chem.MolToSmiles(base)
                order = list(base.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
                molecule, base_points = Chem.MolFromSmiles(own), points[order] * [hand, 1, 1]
            else:
                base_points = points
            noisy = lambda width: np.trunc((base_points + random.normal(0, width, points.shape)) * 1e4) / 1e4
            for _ in range(REFERENCES):
                there = noisy(0.3)
                references.append({"canonical_smiles": own, "embedded_smiles": written(own, there)})
                true.append(with_points(molecule, points_of(references[-1]["embedded_smiles"])))
            kinds = ["good", "order", "good", "junk", "cut", "number", "other"]
            for kind in kinds[:TEXTS] if at % 4 else ["cut", "other", "number"]:
                text = spoilt(kind, molecule, own, noisy(0.2 + 0.2 * (at % 3)))
                texts.append({"smiles": own, "geom_smiles": key, "text": text})
                probes.append(generated(own, text))
        probes = [probe for probe in probes if probe is not None]
        if not probes:
            missing += 1
            continue
        matrices[key] = np.array([[rdMolAlign.GetBestRMS(Chem.Mol(p), r) for p in probes] for r in true])
    for name, rows in (("texts", texts), ("references", references)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "expected.pickle").write_bytes(pickle.dumps(matrices))
    print(json.dumps({"missing": missing, "molecules": len(matrices), **figures(matrices)}))


def figures(matrices):
    near = [(np.nanmin(matrix, axis=1), np.nanmin(matrix, axis=0)) for matrix in matrices.values()]
    cov_r = np.array([[(true < t).mean() for t in THRESHOLDS] for true, _ in near])
    cov_p = np.array([[(probe < t).mean() for t in THRESHOLDS] for _, probe in near])
    mat_r, mat_p = ([float(np.nanmean(pair[side])) for pair in near] for side in (0, 1))
    both = lambda values: [np.mean(values, axis=0).tolist(), np.median(values, axis=0).tolist()]
    return {"cov_r": both(cov_r), "cov_p": both(cov_p), "mat_r": both(mat_r), "mat_p": both(mat_p)}


def sorted_rows(matrix):
    """The rows of a matrix in an order of their own: references of pooled isomers come in another one."""
    return matrix[np.lexsort(matrix.T.round(6))]


def compare(folder, pickled, archive):
    expected = pickle.loads((folder / "expected.pickle").read_bytes())
    with open(pickled, "rb") as file:
        found = pickle.load(file)
    assert list(found) == list(expected), "the molecules differ"
    off = 0.0
    for smiles, matrix in expected.items():
        assert (found[smiles]["n_true"], found[smiles]["n_model"]) == matrix.shape == found[smiles]["rmsd"].shape
        off = max(off, float(np.abs(sorted_rows(found[smiles]["rmsd"]) - sorted_rows(matrix)).max()))
    with np.load(archive) as arrays:
        ends = np.cumsum([0, *(arrays["texts"] * arrays["references"])])
        sizes = list(zip(arrays["smiles"], arrays["texts"], arrays["references"], ends[:-1], ends[1:]))
        lines = len(set(arrays["line"].tolist()))
        for smiles, texts, references, begin, end in sizes:
            matrix = arrays["rmsd"][begin:end].reshape(texts, references)
            usable = matrix[~np.isnan(matrix).all(axis=1)]
            if len(usable):
                off = max(off, float(np.abs(sorted_rows(usable.T) - sorted_rows(expected[str(smiles)])).max()))
            else:
                assert str(smiles) not in expected
    print(json.dumps({"off": off, "lines": lines, "molecules": len(sizes)}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    else:
        compare(Path(sys.argv[2]), *sys.argv[3:5])
