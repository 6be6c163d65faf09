"""Rewards of whole completions: the arrays of a text, and 3DMolGen's reward beside an implementation of its own."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from moldrift import Completion, DriftError, FBeta, Judge
from moldrift.rewards import f_beta, unique

CONFORMER = re.compile(r"\[CONFORMER\](.*?)\[/CONFORMER\]", re.DOTALL)


def ethanol(z: float) -> str:
    return f"[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,{z:.4f}>"


def tagged(*insides: str) -> str:
    return "".join(f"[CONFORMER]{inside}[/CONFORMER]" for inside in insides)


def judge(**options) -> Judge:
    references = {"CCO": [ethanol(0.0), ethanol(1.5)]}
    return Judge(references, conformers="all", within_texts=True, **options)


def test_the_arrays_of_a_completion() -> None:
    broken = "[CONFORMER][C]<1"
    s = judge().score(["CCO", "CCO"], [tagged(ethanol(0), ethanol(3)) + broken, tagged(ethanol(1.5))])
    first, second = s.completions()
    assert (len(first), len(second), first.smiles, second.rows) == (3, 1, "CCO", slice(3, 4))
    assert first.passed.tolist() == [True, True, False] and first.rmsd.shape == (3, 2)
    assert first.of("place").tolist() == [0, 1, 2] and first.of("valid").dtype == bool
    assert first.within.shape == (3, 3) and np.isnan(first.within[2]).all() and first.within[0, 0] == 0
    assert first.within[0, 1] == first.within[1, 0] > 0.3 and np.isnan(first.nearest[2])
    for name in ("why", "group_hits", "no_such_array"):
        with pytest.raises(DriftError, match=f"{name}: is no array of the scores"):
            first.of(name)
    # Another isomer's or molecule's distances are NaN; a molecule without references has an array without columns.
    (other,) = judge().score("CCN", tagged(ethanol(0).replace("[O]", "[N]"))).completions()
    assert other.rmsd.shape == (1, 0) and FBeta(least_valid=0)(other) == 0.0
    with pytest.raises(DriftError, match=r"within_texts: is off; give Judge within_texts=True"):
        Judge().score("CCO", tagged(ethanol(0))).completions()


def test_duplicates_are_those_of_earlier_kept_ones() -> None:
    within = np.abs(np.subtract.outer(*[np.array([0.0, 0.2, 0.4, 0.6, 0.1])] * 2))
    every = np.ones(5, dtype=bool)
    assert unique(within, every, 0.3).tolist() == [True, False, True, False, False]
    # One that does not count hides no other.
    assert unique(within, np.array([False, True, True, True, True]), 0.3).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    # A distance that equals the bound is no duplicate, and at 0 none is.
    assert unique(within[:2, :2], every[:2], 0.2).all() and unique(within, every, 0.0).all()


def test_gates_and_limits() -> None:
    s = judge().score(
        "CCO", [tagged(*map(ethanol, (0, 0.01, 1.5, 3))), tagged(ethanol(0)), "", "[CONFORMER][C]<1"]
    )
    four, one, empty, cut = s.completions()
    assert FBeta()(four) > 0 and FBeta().of_scores(s) == [FBeta()(four), 0, 0, 0]
    assert FBeta(least_valid=1)(one) > 0 and FBeta(least_valid=0)(empty) == FBeta(least_valid=0)(cut) == 0
    terms = FBeta(target=2, gamma=2).terms(four)
    assert (terms["conformers"], terms["valid"], terms["finished"], terms["unique"]) == (4, 2, 1, 0.5)
    twice = FBeta(target=2, least_valid=0, use_unique=False)(four)
    assert twice == pytest.approx(2 * FBeta(target=2, least_valid=0)(four))
    assert FBeta(gate="valid")(four) == FBeta(gate=lambda c: c.of("valid"))(four)
    assert FBeta(gate=lambda c: np.zeros(len(c), dtype=bool), least_valid=0)(four) == 0
    with pytest.raises(DriftError, match=r"gate: shape \(\), not one value for each of 4 conformers"):
        FBeta(gate=lambda c: True)(four)  # type: ignore[arg-type, return-value]
    with pytest.raises(DriftError, match="target: 0 conformers"):
        FBeta(target=0)
    with pytest.raises(DriftError, match="sigma"):
        FBeta(sigma=0.0)
    assert (f_beta(0.0, 0.5, 1.5), f_beta(0.0, 0.0, 1.5)) == (0.0, 0.0)
    assert f_beta(0.5, 0.5, 2.0) == pytest.approx(0.5)
    assert isinstance(four, Completion)


def test_the_reward_is_theirs() -> None:
    """Beside the rule of 3DMolGen's grpo_reward_fbeta.py, written with RDKit and NumPy, on random completions."""
    chem = pytest.importorskip("rdkit.Chem")
    align = pytest.importorskip("rdkit.Chem.rdMolAlign")
    all_chem = pytest.importorskip("rdkit.Chem.AllChem")
    random = np.random.default_rng(5)

    def points(text: str) -> np.ndarray | None:
        blocks = [block.split(",") for block in re.findall(r"<([^>]*)>", text)]
        return np.array(blocks, dtype=float) if blocks and all(len(block) == 3 for block in blocks) else None

    def theirs(smiles: str, references: list[str], text: str, target: int) -> float:
        bare = chem.MolFromSmiles(smiles)

        def molecule(inside: str):
            found = points(inside)
            if found is None or len(found) != bare.GetNumAtoms():
                return None
            conformer = chem.Conformer(len(found))
            for at, point in enumerate(found):
                conformer.SetAtomPosition(at, point.tolist())
            with_it = chem.Mol(bare)
            with_it.AddConformer(conformer)
            return with_it

        def rmsd(one, other) -> float:
            return align.GetBestRMS(chem.Mol(one), other)

        valid = [one for one in map(molecule, CONFORMER.findall(text)[:target]) if one is not None]
        if len(valid) < 3:
            return 0.0
        true = [molecule(one) for one in references]
        distances = np.array([[rmsd(one, other) for other in true] for one in valid])
        recall, precision = (distances.min(axis=0) < 0.75).mean(), (distances.min(axis=1) < 0.75).mean()
        score = (1 + 1.5**2) * precision * recall / (1.5**2 * precision + recall + 1e-8)
        soft = np.exp(-(distances.min(axis=1) ** 2) / 0.75**2).mean()
        kept: list = []
        for one in valid:
            if all(rmsd(one, other) >= 0.3 for other in kept):
                kept.append(one)
        return float((score + 0.1 * soft) * (len(valid) / target) ** 1.5 * len(kept) / len(valid))

    seen = []
    for smiles in ("CCCCO", "CC(C)(C)c1ccccc1", "OCC(F)(F)CN", "C1CCCCC1"):
        bare = chem.MolFromSmiles(smiles)
        full = chem.AddHs(bare)
        all_chem.EmbedMultipleConfs(full, 6, randomSeed=7)
        base = [conformer.GetPositions()[: bare.GetNumAtoms()] for conformer in full.GetConformers()]

        def written(position: np.ndarray, smiles: str = smiles) -> str:
            rows = iter(position)
            block = lambda: "<{:.4f},{:.4f},{:.4f}>".format(*next(rows))  # noqa: E731
            return re.sub(r"[A-Zc]", lambda atom: f"[{atom.group(0)}]{block()}", smiles)

        references = [written(position) for position in base[:3]]
        scorer = Judge({smiles: references}, conformers="all", within_texts=True)
        texts = []
        for _ in range(12):
            count = int(random.integers(0, 11))
            insides = [
                written(
                    base[int(random.integers(6))]
                    + random.normal(0, random.choice([0.01, 0.2, 0.5]), base[0].shape)
                )
                for _ in range(count)
            ]
            # Some conformers lack a number or an atom, and the last one may not be closed.
            insides = [one.replace(",", "", 1) if random.random() < 0.1 else one for one in insides]
            texts.append(tagged(*insides) + ("[CONFORMER][C]<1.0" if random.random() < 0.3 else ""))
        found = FBeta().of_scores(scorer.score(smiles, texts))
        expected = [theirs(smiles, references, text, 8) for text in texts]
        assert np.allclose(found, expected, atol=1e-6), (smiles, found, expected)
        seen += found
    assert 10 < sum(one > 0 for one in seen) < 48 and not any(map(math.isnan, seen))
