"""The judge in memory: its interface, references of every kind, the same figures as `audit`, and bad input."""

from __future__ import annotations

import json
import pickle
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import moldrift
from moldrift import DriftError, Judge

ETHANOL = "[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,0.0000>"
POINTS = np.array([[-1.2, -0.2, 0.0], [0.0, 0.55, 0.0], [1.17, -0.3, 0.0]])


def text(z: str = "0.0000", tags: bool = True) -> str:
    inside = ETHANOL.replace("-0.3000,0.0000>", f"-0.3000,{z}>")
    return f"[CONFORMER]{inside}[/CONFORMER]" if tags else inside


def test_the_interface() -> None:
    judge = Judge({"CCO": [ETHANOL, POINTS]}, encoding="fixed", thresholds=[0.5, 0.75])
    texts = [text("0.1000"), text("0.1000", tags=False), "[CONFORMER][C]<1", text().replace("[O]", "[N]")]
    s = judge.score(["CCO"] * 4, texts)
    for flags in (s.passed, s.valid, s.passed_by_3dmolgen):
        assert flags.dtype == bool and flags.shape == (4,)
    assert (
        s.passed.tolist() == s.valid.tolist() == s.passed_by_3dmolgen.tolist() == [True, True, False, False]
    )
    for counts in (s.stereocentres, s.stereocentres_right, s.duplicate_of):
        assert counts.dtype.kind == "i" and counts.shape == (4,)
    assert s.duplicate_of.tolist() == [-1, 0, -1, -1]
    assert [row.shape for row in s.rmsd] == [(2,)] * 4 and s.rmsd[0].dtype == float
    assert np.isnan(s.rmsd[2]).all() and (s.rmsd[0] < 0.1).all()
    assert s.why == ["", "", "no end: no [/CONFORMER]", "another molecule: CCN, not CCO"]
    assert s.coverage_recall.tolist() == [[1.0, 1.0]] and s.coverage_precision.shape == (1, 2)
    assert s.group_usable.tolist() == [2] and s.matching_recall[0] == pytest.approx(s.rmsd[0][0])
    assert judge.thresholds.tolist() == [0.5, 0.75] and judge.molecules == {"CCO": 2}
    assert "4 conformers, 2 passed" in repr(s) and len(s) == 4
    assert Judge(threshold=0.75).thresholds.tolist() == Judge().thresholds.tolist() == [0.75]


def test_molecules_without_a_text_count_as_zero(tmp_path: Path) -> None:
    amine = ETHANOL.replace("[O]", "[N]")
    judge = Judge({"CCO": [ETHANOL], "CCN": [amine, amine]}, thresholds=[0.5, 0.75])
    scores = judge.score(["CCO", "CCC"], [text(), text().replace("[O]", "[C]")])
    found = judge.coverage(scores)
    assert (found["molecules"], found["without_text"]) == (2, ["CCN"])
    at = found["thresholds"][1]
    assert (at["angstrom"], at["cov_r"], at["cov_p"]) == (0.75, *[{"mean": 0.5, "median": 0.5}] * 2)
    zero = pytest.approx(0.0, abs=1e-9)
    assert found["mat_r"] == found["mat_p"] == {"mean": zero, "median": zero}
    left = judge.coverage(scores, missing="leave-out")
    assert left["molecules"] == 1 and left["thresholds"][0]["cov_r"]["mean"] == 1.0
    # A text that does not pass is no text to compare.
    broken = judge.coverage(judge.score("CCO", "[CONFORMER][C]<1"), missing="leave-out")
    assert broken["molecules"] == 0 and broken["thresholds"][0]["cov_r"] is None and broken["mat_r"] is None
    with pytest.raises(DriftError, match="missing: `none` is none of its words"):
        judge.coverage(scores, missing="none")  # type: ignore[arg-type]
    # As `audit` says.
    (tmp_path / "texts.jsonl").write_text(json.dumps({"smiles": "CCO", "text": text()}) + "\n")
    rows = [{"embedded_smiles": one} for one in (ETHANOL, amine, amine)]
    (tmp_path / "references.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    references = tmp_path / "references.jsonl"
    report = moldrift.audit(
        tmp_path / "texts.jsonl", dialect="fixed", references=references, thresholds=[0.75]
    )
    assert report["total"]["coverage"]["thresholds"][0]["cov_r"]["mean"] == at["cov_r"]["mean"]
    assert report["total"]["geometry"]["without_text"] == 1


def test_references_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "references.jsonl"
    path.write_text(json.dumps({"canonical_smiles": "CCO", "embedded_smiles": ETHANOL}) + "\n")
    kinds = [ETHANOL, [ETHANOL], text(), POINTS, POINTS[None], [POINTS], POINTS.tolist(), POINTS.astype("f8")]
    judges = [Judge({"CCO": kind}) for kind in kinds] + [Judge(path), Judge([path], molecules=["CCO"])]
    found = [judge.score("CCO", text("0.5000")).rmsd[0].tolist() for judge in judges]
    assert all(one == found[0] for one in found) and 0 < found[0][0] < 0.5, found
    # Every second point, and the other order of memory.
    strided = np.asfortranarray(np.repeat(POINTS[None], 4, axis=0))[::2]
    assert Judge({"CCO": strided}).score("CCO", text("0.5000")).rmsd[0].tolist() == found[0] * 2


def test_molecules_of_rdkit() -> None:
    chem = pytest.importorskip("rdkit.Chem")
    all_chem = pytest.importorskip("rdkit.Chem.AllChem")
    molecule = chem.AddHs(chem.MolFromSmiles("OCC(C)(C)c1ccccc1F"))
    all_chem.EmbedMultipleConfs(molecule, 3, randomSeed=1)
    smiles = "CC(C)(CO)c1ccccc1F"
    s = Judge({smiles: molecule}).score(smiles, [])
    assert Judge({smiles: [molecule, molecule]}).molecules == {smiles: 6} and len(s) == 0
    with pytest.raises(DriftError, match="is another molecule"):
        Judge({"CCO": molecule})
    with pytest.raises(DriftError, match="without a conformer"):
        Judge({"CCO": chem.MolFromSmiles("CCO")})


def test_it_says_what_audit_says(tmp_path: Path) -> None:
    references = [text(f"{z:.4f}", tags=False) for z in (0.0, 0.3, 0.9)]
    path = tmp_path / "references.jsonl"
    rows = [{"canonical_smiles": "CCO", "embedded_smiles": one} for one in references]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = [text(f"{z / 10:.4f}") for z in range(-9, 9)] + [text()[:40], text().replace(">", "abra>", 1)]
    records = [{"smiles": "CCO", "text": one} for one in texts]
    verdicts, npz, pickled = (tmp_path / name for name in ("v.jsonl", "m.npz", "m.pickle"))
    options = {"references": path, "dialect": "fixed", "thresholds": [0.1, 0.75]}
    report = moldrift.audit(records, verdicts=verdicts, matrix=npz, **options)
    moldrift.audit(records, matrix=pickled, **options)

    s = Judge({"CCO": references}, thresholds=[0.1, 0.75]).score("CCO", texts)
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    for name in (
        "passed",
        "passed_by_3dmolgen",
        "valid",
        "stereocentres",
        "clashing",
        "why",
        "faults",
        "references",
    ):
        assert [line[name] for line in lines] == list(getattr(s, name)), name
    known = [line["rmsd_angstrom"] for line in lines]
    assert [None if np.isnan(x) else x for x in s.rmsd_to_nearest.tolist()] == known
    assert [
        -1 if line["duplicate_of"] is None else line["duplicate_of"] for line in lines
    ] == s.duplicate_of.tolist()
    matrix = moldrift.read_matrix(npz)["CCO"]
    assert np.array_equal(matrix, np.stack(s.rmsd), equal_nan=True)
    theirs = pickle.loads(pickled.read_bytes())["CCO"]
    assert (theirs["n_true"], theirs["n_model"]) == theirs["rmsd"].shape == (3, int(s.passed.sum()))
    assert np.array_equal(theirs["rmsd"], matrix[s.passed].T) and theirs["rmsd"].flags.writeable
    for at, found in enumerate(report.total["coverage"]["thresholds"]):
        assert found["cov_r"]["mean"] == s.coverage_recall[0, at]
        assert found["cov_p"]["mean"] == s.coverage_precision[0, at]


def test_a_reward_of_named_parts() -> None:
    judge = Judge({"CCO": ETHANOL}, reward={"passed": 0.5, "valid": 1.0, "rmsd": 2.0})
    s = judge.score("CCO", [text(), "junk"])
    assert s.reward.tolist() == pytest.approx([3.5, 0.0])
    with pytest.raises(DriftError, match="`beauty` is not a part of the reward; the parts are passed"):
        Judge(reward={"beauty": 1.0})
    with pytest.raises(DriftError, match="needs references"):
        judge.score("CCN", text())


def test_several_conformers_of_one_text() -> None:
    several = f"{text()}{text('2.0000')}[CONFORMER][C]<1"
    assert Judge().score("CCO", several).conformers_in_text.tolist() == [3]
    s = Judge(conformers="all").score("CCO", [several, text()])
    assert s.text.tolist() == [0, 0, 0, 1] and s.place.tolist() == [0, 1, 2, 0]
    assert s.passed.tolist() == [True, True, False, True] and s.duplicate_of.tolist() == [-1, -1, -1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Judge({"CCN": ETHANOL}), "references of CCN, 0: is another molecule: CCO"),
        (
            lambda: Judge({"CCO": np.full((1, 3, 3), np.nan)}),
            "references of CCO, 0: atom 0 has a coordinate that is no",
        ),
        (lambda: Judge({"CCO": POINTS[:2]}), "has 2 atoms, and the SMILES writes 3"),
        (lambda: Judge({"CCO": POINTS[:, :2]}), "give .conformers, heavy atoms, 3."),
        (lambda: Judge({"CCO": [["a"]]}), "CCO"),
        (lambda: Judge({"CCO": 7}), "int is no text, array or molecule"),
        (lambda: Judge({"CCO": "[C]166156135;[C]166156135;[O]175145137;"}), "references of CCO, 0"),
        (lambda: Judge({"C(": ETHANOL}), "C\\("),
        (lambda: Judge("no/such/file"), "no/such/file"),
        (lambda: Judge(encoding="morse"), "morse"),
        (lambda: Judge(thresholds=[]), "thresholds"),
        (lambda: Judge(thresholds=[0.5], threshold=0.5), "give one of them"),
        (lambda: Judge(threshold=float("nan")), "threshold"),
        (lambda: Judge(duplicates=-1), "bound for duplicates"),
        (lambda: Judge(conformers="some"), "conformers"),  # type: ignore[arg-type]
        (lambda: Judge().score(["CCO"], []), "1 SMILES and 0 texts; give one SMILES a text"),
        (lambda: Judge().score(["CC("], ["x"]), "CC\\("),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message) -> None:
    with pytest.raises(DriftError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_texts_of_another_encoding_are_told_once() -> None:
    judge = Judge()
    with pytest.warns(UserWarning, match="no text has a decimal point"):
        s = judge.score("CO", ["[C]<586,563,511>[O]<609,537,518>"] * 2)
    assert not s.valid.any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        judge.score("CO", ["[C]<586,563,511>[O]<609,537,518>"] * 2)
    bins = Judge(encoding="binned-v1:-21,21,0.05").score("CO", "[C]<420,420,420>[O]<448,420,420>")
    assert bins.passed.all() and bins.valid.all()


def test_many_texts_from_several_threads() -> None:
    judge = Judge({"CCO": ETHANOL})
    texts = [text(f"{z:.4f}") for z in np.linspace(-1, 1, 500)]
    expected = judge.score("CCO", texts)
    results: list[moldrift.Scores] = []

    def score() -> None:
        results.append(judge.score("CCO", texts))

    threads = [threading.Thread(target=score) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        assert np.array_equal(np.stack(result.rmsd), np.stack(expected.rmsd))
        assert result.duplicate_of.tolist() == expected.duplicate_of.tolist()


def test_pickles_of_generated_molecules(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    texts = [text(f"{z:.4f}") for z in (0.0, 0.5, 1.0)] + [text()[:40]]
    judge = Judge({"CCO": ETHANOL})
    s = judge.score("CCO", texts)
    path = tmp_path / "generation_results.pickle"
    assert moldrift.write_generations(path, ["CCO"] * 4, texts, s.passed) == 3
    whole = pickle.loads(path.read_bytes())
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards/0.pkl").write_bytes(pickle.dumps({"generations": whole, "stats": {}}))
    for given in (path, [path], tmp_path / "shards"):
        smiles, again = moldrift.read_generations(given)
        assert smiles == ["CCO"] * 3
        assert np.array_equal(np.stack(judge.score(smiles, again).rmsd), np.stack(s.rmsd[:3]))
    path.write_bytes(pickle.dumps({"CCO": [Path("/")]}))
    with pytest.raises(DriftError, match="pathlib"):
        moldrift.read_generations(path)
    path.write_bytes(b"none")
    with pytest.raises(DriftError, match="no pickle of generated molecules"):
        moldrift.read_generations(path)
