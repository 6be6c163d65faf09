"""Hit@K, clusters and torsions of the judge: its arrays, and the same figures as `audit`."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import moldrift
from moldrift import DriftError, Judge


def butane(x: float, z: float, tags: bool = True) -> str:
    inside = f"[C]<0.0000,1.0000,0.0000>[C]<0.0000,0.0000,0.0000>[C]<1.5000,0.0000,0.0000>[C]<1.5000,{x:.4f},{z:.4f}>"
    return f"[CONFORMER]{inside}[/CONFORMER]" if tags else inside


def at(degrees: float, length: float = 1.0, tags: bool = True) -> str:
    angle = math.radians(degrees)
    return butane(length * math.cos(angle), length * math.sin(angle), tags)


BROKEN = "[CONFORMER][C]<1"


def scene() -> tuple[dict[str, list[str]], list[str], list[str]]:
    """References, and prompts with texts: good ones, broken ones, a molecule without references, one without texts."""
    methanol = "[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>"
    references = {"CCCC": [at(0, tags=False), at(180, tags=False)], "CO": [methanol]}
    texts = [at(degrees) for degrees in (5, 10, 100, 170, 175, -175, 60)] + [BROKEN, BROKEN]
    other = "[CONFORMER][C]<0.0000,0.0000,0.0000>[N]<{:.4f},0.0000,0.0000>[/CONFORMER]"
    others = [other.format(x) for x in (1.4, 1.5, 3.4)]
    return references, ["CCCC"] * len(texts) + ["CN"] * 3, texts + others


def test_arrays_of_ensembles() -> None:
    references, smiles, texts = scene()
    judge = Judge(references, hits=[0.5, 0.1], at=[3, 1, 50], clusters=[0.12, 0.0])
    s = judge.score(smiles, texts)
    assert (s.draws.tolist(), s.hit_thresholds.tolist(), s.cluster_thresholds.tolist()) == (
        [1, 3, 50],
        [0.1, 0.5],
        [0.0, 0.12],
    )
    assert s.group_hits.shape == s.group_references_hit.shape == s.group_hits_of_conformers.shape == (2, 3, 2)
    rmsd = np.stack(s.rmsd[:7])
    for level, threshold in enumerate(s.hit_thresholds):
        for row, k in enumerate(s.draws.tolist()):
            for found, drawn, n in (
                (s.group_hits, rmsd.min(axis=1), 9),
                (s.group_hits_of_conformers, rmsd.min(axis=1), 7),
            ):
                assert found[0, row, level] == pytest.approx(share((drawn <= threshold).sum(), n, k))
            each = [share((column <= threshold).sum(), 9, k) for column in rmsd.T]
            assert s.group_references_hit[0, row, level] == pytest.approx(np.mean(each))
    nearest = np.sort(rmsd.min(axis=1))
    assert s.group_best_rmsd[0, 0] == pytest.approx(nearest.mean()) and s.group_best_rmsd[0, 2] == nearest[0]
    assert np.isnan(s.group_hits[1]).all() and np.isnan(s.group_best_rmsd[1]).all()

    # Nothing is below 0 Å; at 0.12 Å the torsions of the first two, and of the fourth to the sixth, are alike.
    assert s.clusters.shape == (12, 2) and s.clusters[:, 0].tolist() == [*range(7), -1, -1, 0, 1, 2]
    assert s.clusters[:, 1].tolist() == [0, 0, 1, 2, 2, 2, 3, -1, -1, 0, 0, 1]
    assert s.group_clusters.tolist() == [[7, 4], [3, 2]] and s.group_singletons.tolist() == [[7, 2], [3, 1]]
    shares = np.array([2, 1, 3, 1]) / 7
    entropy = -(shares * np.log(shares)).sum()
    assert s.group_entropy[0, 1] == pytest.approx(entropy)
    assert s.group_effective_clusters[0, 1] == pytest.approx(np.exp(entropy))
    assert s.group_evenness[0, 1] == pytest.approx(entropy / np.log(4))
    angles = np.radians([5, 10, 100, 170, 175, -175, 60])
    spread = math.degrees(math.sqrt(2 * (1 - abs(np.exp(1j * angles).mean()))))
    assert s.group_torsion_spread[0] == pytest.approx(spread, abs=1e-2) and np.isnan(
        s.group_torsion_spread[1]
    )
    assert s.group_rotatable_bonds.tolist() == [1, 0] and s.group_heavy_atoms.tolist() == [4, 2]


def share(hits: int, texts: int, k: int) -> float:
    """The share of all draws of K texts that contain a hit."""
    k = min(k, texts)
    return 1 - math.comb(texts - int(hits), k) / math.comb(texts, k)


@pytest.mark.parametrize("missing", ["zero", "leave-out"])
def test_the_report_is_that_of_audit(tmp_path: Path, missing) -> None:
    references, smiles, texts = scene()
    path = tmp_path / "references.jsonl"
    rows = [
        {"canonical_smiles": one, "embedded_smiles": text}
        for one, all_ in references.items()
        for text in all_
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = [{"smiles": one, "text": text} for one, text in zip(smiles, texts, strict=True)]
    measures = {"hits": [0.1, 0.5], "at": [1, 3, 50], "clusters": [0.2, 0.5]}
    report = moldrift.audit(records, dialect="fixed", references=path, missing=missing, **measures)
    judge = Judge(references, **measures)
    s = pickle.loads(pickle.dumps(judge.score(smiles, texts)))
    (run,) = report.runs
    assert judge.hits(s, missing=missing) == run["hits"]
    assert judge.clusters(s) == run["clusters"]
    # Methanol has references and no text.
    assert run["hits"]["molecules"] == (2 if missing == "zero" else 1)
    assert [one["by"] for one in run["clusters"]["strata"]] == ["rotatable_bonds", "heavy_atoms"]
    bare = moldrift.audit(records, dialect="fixed", references=path)
    assert "hits" not in bare.runs[0] and "clusters" not in bare.runs[0]


def test_nothing_is_measured_unasked() -> None:
    references, smiles, texts = scene()
    judge = Judge(references)
    s = judge.score(smiles, texts)
    assert s.group_hits.shape == (2, 0, 0) and s.clusters.shape == (12, 0) and s.within == []
    assert s.group_rotatable_bonds.tolist() == [-1, -1] and np.isnan(s.group_torsion_spread).all()
    with pytest.raises(DriftError, match="hits: were not asked for; give Judge hits=, thresholds in Å"):
        judge.hits(s)
    with pytest.raises(DriftError, match="clusters: were not asked for"):
        judge.clusters(s)
    # No text at all.
    empty = Judge(references, hits=[0.5], clusters=[0.5], within_texts=True)
    none = empty.score([], [])
    assert none.completions() == [] and empty.clusters(none)["molecules"] == 0
    assert empty.hits(none)["at"][0]["thresholds"][0]["hit"]["mean"] == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hits": [-1.0]}, "‘hits’: -1 is no threshold; give a length in Å, 0 or more"),
        ({"clusters": [float("nan")]}, "‘clusters’: NaN is no threshold"),
        ({"hits": [0.5], "at": [0]}, "‘at’: 0 texts never hit; give 1 or more"),
    ],
)
def test_bad_measures_are_refused(options, message) -> None:
    with pytest.raises(DriftError, match=message):
        Judge(**options)


def test_audit_needs_references_for_hits() -> None:
    with pytest.raises(DriftError, match="‘hits’: need references to be close to"):
        moldrift.audit([{"smiles": "CCCC", "text": at(0)}], dialect="fixed", hits=[0.5])


def test_symmetric_molecules() -> None:
    """A conformer with its equivalent atoms exchanged is the same."""

    def benzene(first: int) -> str:
        corners = [math.radians(60 * (first + at)) for at in range(6)]
        # Three corners are raised, so that only turns by 120 degrees leave the points as they are.
        points = [
            (1.4 * math.cos(a), 1.4 * math.sin(a), 0.2 * ((first + at) % 2)) for at, a in enumerate(corners)
        ]
        atoms = [f"[c]<{x:.4f},{y:.4f},{z:.4f}>" for x, y, z in points]
        atoms[0] += "1"
        atoms[-1] += "1"
        return f"[CONFORMER]{''.join(atoms)}[/CONFORMER]"

    s = Judge(clusters=[1e-3], conformers="all", within_texts=True).score("c1ccccc1", benzene(0) + benzene(1))
    assert s.passed.all(), s.why
    assert s.clusters.tolist() == [[0], [0]] and np.allclose(s.within[0], 0, atol=1e-3)
