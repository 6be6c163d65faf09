"""Hit@K, clusters and torsions of generated texts, by NumPy and RDKit alone.

    python ensembles.py make CORPUS.jsonl[.gz] FOLDER MOLECULES TEXTS   writes texts.jsonl and references.jsonl
    python ensembles.py measure FOLDER HITS K CLUSTERS                  prints the figures as JSON; lists have commas

Texts are conformers of ETKDG with noise, some of them broken. The clusters follow `greedy_cluster_assignments` and
`cluster_distribution_metrics` of evaluation/conformer_benchmark.py in YerevaNN/3DMolGen (commit b839228), the classes of molecules
their analysis of K. Hits are expectations over all orders of the texts, by binomial coefficients of whole numbers; there they are
means over 20 subsamples. Torsions are angular deviations; there they are standard deviations of angles from -180° to 180°.
"""

import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import AllChem, rdMolAlign, rdMolDescriptors, rdMolTransforms

from run_eval import graph, points_of, read, with_points, written

RDLogger.DisableLog("rdApp.*")

REFERENCES = 4
TORSION = Chem.MolFromSmarts("[!$(*#*)&!D1]-!@[!$(*#*)&!D1]")
NUMBER = re.compile(r"-?\d+(\.\d*)?")
BINS = {"rotatable_bonds": [0, 5, 10, 15], "heavy_atoms": [0, 20, 30, 40]}
#: Molecules with much symmetry, few atoms, several parts, hydrogens that are written.
SPECIAL = ["C", "CC", "CC(C)(C)c1ccc(cc1)C(C)(C)C", "c1ccccc1", "FC(F)(F)C(F)(F)F", "[Na+].CC(=O)[O-]", "[H]/N=C/CC"]


def embedded(smiles, count, seed):
    """Positions of conformers `[count][atoms of the SMILES]`, of ETKDG."""
    bare = Chem.MolFromSmiles(smiles)
    full = Chem.AddHs(bare)
    AllChem.EmbedMultipleConfs(full, count, randomSeed=seed, useRandomCoords=True)
    atoms = bare.GetNumAtoms()
    return [conformer.GetPositions()[:atoms] for conformer in full.GetConformers()]


def broken(at, text):
    """A text that does not pass: cut off, without a number, or of another molecule."""
    return [
        f"[CONFORMER]{text[: len(text) // 2]}",
        "[CONFORMER]" + re.sub(r",[^,>]*>", ">", text, count=1) + "[/CONFORMER]",
        f"[CONFORMER]{text}[C]<9.0000,9.0000,9.0000>[/CONFORMER]",
    ][at % 3]


def make(corpus, folder, count, texts_of_each):
    random = np.random.default_rng(11)
    smiles = list(dict.fromkeys(row["canonical_smiles"] for row in read(corpus)))
    step = max(1, len(smiles) // count)
    smiles = SPECIAL + smiles[::step][: count - len(SPECIAL)]
    texts, references = [], []
    for at, one in enumerate(smiles):
        positions = embedded(one, REFERENCES + max(1, texts_of_each // 3), at + 1)
        if len(positions) < REFERENCES + 1:
            continue
        molecule = Chem.MolFromSmiles(one)
        # The order of the atoms is that of the SMILES as it is spelled.
        spelled = lambda points: written(one, np.trunc(points * 1e4) / 1e4)
        assert molecule.GetNumAtoms() == len(points_of(spelled(positions[0])))
        # One molecule in eleven has no references, one no text, and one no text that passes.
        if at % 11 != 3:
            for points in positions[:REFERENCES]:
                references.append({"canonical_smiles": one, "embedded_smiles": spelled(points)})
        if at % 11 == 5:
            continue
        for number in range(1 if at % 11 == 7 else texts_of_each):
            base = positions[REFERENCES + number % (len(positions) - REFERENCES)] if number % 2 else positions[number % REFERENCES]
            text = spelled(base + random.normal(0, [0.02, 0.1, 0.3][number % 3], base.shape))
            is_broken = at % 11 == 9 or random.random() < 0.15
            texts.append({"smiles": one, "text": broken(number, text) if is_broken else f"[CONFORMER]{text}[/CONFORMER]"})
    for name, rows in (("texts", texts), ("references", references)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(json.dumps({"texts": len(texts), "references": len(references)}))


def conformer(prompt, text):
    """The conformer of a text that passes; None of any other."""
    between = re.search(r"\[CONFORMER\](.*?)\[/CONFORMER\]", text)
    if not between:
        return None
    blocks = [block.split(",") for block in re.findall(r"<([^>]*)>", between.group(1))]
    if not all(len(block) == 3 and all(map(NUMBER.fullmatch, block)) for block in blocks):
        return None
    smiles = re.sub(r"\[(Br|Cl|[BCNOPSFIbcnops])\]", r"\1", re.sub(r"<[^>]*>", "", between.group(1)))
    molecule = Chem.MolFromSmiles(smiles, sanitize=True)
    if molecule is None or graph(smiles) != graph(prompt) or len(blocks) != molecule.GetNumAtoms():
        return None
    return with_points(molecule, points_of(between.group(1)))


def best_rmsd(one, other):
    return rdMolAlign.GetBestRMS(Chem.Mol(one), other)


def share_of_draws(hits, texts, k):
    k = min(k, texts)
    return float(1 - Fraction(math.comb(texts - hits, k), math.comb(texts, k))) if texts else 0.0


def expected_least(values, k):
    values, n = np.sort(values), len(values)
    k = min(k, n)
    weights = [Fraction(math.comb(n - 1 - at, k - 1), math.comb(n, k)) for at in range(n)]
    return float(np.dot([float(weight) for weight in weights], values))


def hits_of(texts, rmsd, thresholds, draws):
    """`rmsd` is [conformers, references]."""
    nearest = rmsd.min(axis=1) if rmsd.size else np.zeros(0)
    return [
        {
            "best_rmsd_angstrom": expected_least(nearest, k) if len(nearest) else None,
            "thresholds": [
                {
                    "hit": share_of_draws(int((nearest <= t).sum()), texts, k),
                    "references_hit": float(
                        np.mean([share_of_draws(int((column <= t).sum()), texts, k) for column in rmsd.T])
                    ),
                    "hit_of_conformers": share_of_draws(int((nearest <= t).sum()), len(nearest), k) if len(nearest) else None,
                }
                for t in thresholds
            ],
        }
        for k in draws
    ]


def greedy(distances, threshold):
    assignments, leaders = [], []
    for at in range(len(distances)):
        near = [distances[at, leader] for leader in leaders]
        if near and min(near) < threshold:
            assignments.append(int(np.argmin(near)))
        else:
            assignments.append(len(leaders))
            leaders.append(at)
    return assignments


def occupancy(assignments, texts):
    counts = np.bincount(assignments)
    shares = counts / counts.sum()
    entropy = -float(np.sum(shares * np.log(shares))) if len(counts) > 1 else 0.0
    return {
        "clusters": len(counts),
        "per_100_conformers": 100.0 * len(counts) / len(assignments),
        "per_100_texts": 100.0 * len(counts) / texts,
        "entropy_nats": entropy,
        "evenness": entropy / math.log(len(counts)) if len(counts) > 1 else 0.0,
        "effective": math.exp(entropy),
        "largest_share": float(shares.max()),
        "simpson": float((shares**2).sum()),
        "singleton_share": float((counts == 1).mean()),
    }


def torsion_spread(molecules):
    """In degrees; None without torsions."""
    first = molecules[0]
    spreads = []
    for j, k in {tuple(sorted(match)) for match in first.GetSubstructMatches(TORSION)}:
        beside = [
            min((a.GetIdx() for a in first.GetAtomWithIdx(own).GetNeighbors() if a.GetIdx() != other and a.GetAtomicNum() > 1), default=None)
            for own, other in ((j, k), (k, j))
        ]
        if None in beside:
            continue
        angles = [rdMolTransforms.GetDihedralRad(one.GetConformer(), beside[0], j, k, beside[1]) for one in molecules]
        spreads.append(math.degrees(math.sqrt(2 * max(0.0, 1 - abs(np.mean(np.exp(1j * np.array(angles))))))))
    return float(np.mean(spreads)) if spreads else None


def over(values):
    values = [value for value in values if value is not None]
    return {"mean": float(np.mean(values)), "median": float(np.median(values))} if values else None


def summed(rows, names):
    """Means and medians over dictionaries of equal fields."""
    return {name: over([row[name] for row in rows]) for name in names}


def hit_report(molecules, thresholds, draws):
    at = []
    for index, k in enumerate(draws):
        own = [molecule["hits"][index] for molecule in molecules]
        levels = [
            {"angstrom": t, **summed([one["thresholds"][level] for one in own], own[0]["thresholds"][level])}
            for level, t in enumerate(thresholds)
        ]
        enough = sum(molecule["texts"] >= k for molecule in molecules)
        at.append({"k": k, "molecules_with_k_texts": enough, **summed(own, ["best_rmsd_angstrom"]), "thresholds": levels})
    return {"molecules": len(molecules), "at": at}


def cluster_report(molecules, thresholds):
    levels = [
        {
            "angstrom": t,
            "total": sum(molecule["clusters"][level]["clusters"] for molecule in molecules),
            **summed([molecule["clusters"][level] for molecule in molecules], molecules[0]["clusters"][level]),
        }
        for level, t in enumerate(thresholds)
    ]
    counts = {name: sum(molecule[name] for molecule in molecules) for name in ("texts", "conformers")}
    return {"molecules": len(molecules), **counts, **summed(molecules, ["torsion_spread_degrees"]), "thresholds": levels}


def by_class(report, molecules):
    strata = []
    for by, firsts in BINS.items():
        for first, after in zip(firsts, [*firsts[1:], math.inf]):
            own = [molecule for molecule in molecules if first <= molecule[by] < after]
            if own:
                to = None if after == math.inf else after - 1
                strata.append({"by": by, "from": first, "to": to, **report(own)})
    return {**report(molecules), "strata": strata}


def measured(smiles, texts, references, hits, draws, clusters):
    true = [conformer(smiles, f"[CONFORMER]{text}[/CONFORMER]") for text in references]
    found = [one for one in (conformer(smiles, text) for text in texts) if one is not None]
    distances = np.zeros((len(found), len(found)))
    for i in range(len(found)):
        for j in range(i):
            distances[i, j] = distances[j, i] = best_rmsd(found[j], found[i])
    rmsd = np.array([[best_rmsd(one, reference) for reference in true] for one in found]).reshape(len(found), len(true))
    bare = Chem.MolFromSmiles(smiles)
    return {
        "texts": len(texts),
        "conformers": len(found),
        "references": len(true),
        "rotatable_bonds": rdMolDescriptors.CalcNumRotatableBonds(bare),
        "heavy_atoms": bare.GetNumHeavyAtoms(),
        "hits": hits_of(len(texts), rmsd, hits, draws) if true else None,
        "clusters": [occupancy(greedy(distances, t), len(texts)) for t in clusters] if found else None,
        "torsion_spread_degrees": torsion_spread(found) if found else None,
    }


def measure(folder, hits, draws, clusters):
    texts, references = {}, {}
    for row in read(str(folder / "texts.jsonl")):
        if "text" in row:
            texts.setdefault(row["smiles"], []).append(row["text"])
    for row in read(str(folder / "references.jsonl")):
        references.setdefault(row["canonical_smiles"], []).append(row["embedded_smiles"])
    every = dict.fromkeys([*texts, *references])
    molecules = [measured(one, texts.get(one, []), references.get(one, []), hits, draws, clusters) for one in every]
    with_references = [one for one in molecules if one["references"]]
    with_conformers = [one for one in molecules if one["conformers"]]
    print(
        json.dumps(
            {
                "hits": by_class(lambda own: hit_report(own, hits, draws), with_references),
                "left_out": hit_report([one for one in with_references if one["conformers"]], hits, draws),
                "clusters": by_class(lambda own: cluster_report(own, clusters), with_conformers),
            }
        )
    )


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        numbers = [[float(one) for one in given.split(",")] for given in sys.argv[3:6]]
        measure(Path(sys.argv[2]), numbers[0], [int(k) for k in numbers[1]], numbers[2])
