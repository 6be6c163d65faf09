"""The results of `moldrift.Judge`: of a batch of texts, and of one of them, for rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from moldrift.errors import DriftError

__all__ = ["Completion", "Scores"]

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Scores:
    """The results of a batch of texts, as arrays.

    There is one row per text, in the order of the texts; with ``conformers="all"`` one row per conformer. If a text
    does not pass, or its molecule is larger than ``max_atoms``, its figures of chemistry are False or 0, and its
    distances are NaN.

    Attributes:
        passed: bool [texts], whether the text has the molecule of the prompt and three numbers after each atom.
        passed_by_3dmolgen: bool [texts], whether the text passes by the rules of 3DMolGen.
        why: a list of strings, the reason why a text does not pass, or ``""`` if it does.
        checked, valid, valid_geometry: bool [texts], whether the chemistry was checked, whether it breaks no rule,
            and whether it breaks no rule other than those of stereo.
        faults: a list of lists of strings, the first 20 broken rules.
        stereocentres, stereocentres_right, double_bonds, double_bonds_right, stereo_unchecked: int [texts].
        clashing, bad_bonds, bad_angles, bent_aromatic_rings, flat_rings, bent_double_bonds, fragmented, flat, planar:
            bool [texts], as `moldrift.audit` counts them.
        clashes: int [texts], pairs of atoms that clash.
        rmsd: a list of arrays, float [references of its molecule], in Å: the smallest RMSD of heavy atoms over
            symmetric orders of atoms, as RDKit's GetBestRMS; NaN if the text has no conformer to compare.
        rmsd_to_nearest: float [texts], the RMSD to the nearest reference; NaN without one.
        nearest_reference: int [texts], the index of the nearest reference; -1 without one.
        bond_error: float [texts], the mean difference of bond lengths from the references' means, in Å.
        references: int [texts], the number of references.
        duplicate_of: int [texts], the row of the molecule's first text with the same conformer; -1 if there is none.
        reward: float [texts], 0 unless parts of a reward were given.
        text, place, conformers_in_text: int [texts], the text of a row, the place of its conformer in the text, and
            the number of conformers in the text.
        group: int [texts], the index of the row's molecule among the groups.
        group_smiles: a list of strings, the molecules in order of first occurrence.
        group_conformers, group_usable, group_references: int [groups], the numbers of conformers, of usable conformers
            and of references.
        coverage_recall, coverage_precision: float [groups, thresholds]; NaN if there is nothing to divide by.
        matching_recall, matching_precision: float [groups], in Å.
        rmsd_upper_bounds: int [groups], the number of RMSDs that are only upper bounds, since the molecule has too
            much symmetry.
        thresholds: float [thresholds], in Å.
        draws, hit_thresholds, cluster_thresholds: int [K], float [hit thresholds] and float [cluster thresholds], what was
            asked of `Judge`; empty by default, as the arrays below then are.
        group_hits: float [groups, K, hit thresholds], the probability that one of K texts is within the threshold of a
            reference: the share of all orders of the texts in which the first K contain one. Texts that do not pass never
            hit. NaN without references.
        group_references_hit: float [groups, K, hit thresholds], the share of references within the threshold of one of K
            texts.
        group_hits_of_conformers: float [groups, K, hit thresholds], `group_hits` if only texts that can be compared are
            drawn; NaN without one.
        group_best_rmsd: float [groups, K], the expected least RMSD of K conformers to a reference, in Å.
        clusters: int [texts, cluster thresholds], the cluster of a conformer in its group; -1 without a conformer.
        group_clusters, group_singletons: int [groups, cluster thresholds], the numbers of clusters, and of clusters with
            one conformer.
        group_entropy, group_effective_clusters, group_evenness: float [groups, cluster thresholds], the entropy of the
            shares of conformers in clusters in nats, its exponential, and its share of the largest one possible.
        group_torsion_spread: float [groups], the mean angular deviation of torsions in degrees; NaN unless clusters were
            asked for, and without torsions.
        group_heavy_atoms, group_rotatable_bonds: int [groups]; -1 unless hits or clusters were asked for.
        within: a list of arrays, float [conformers, conformers], one for each text: the RMSDs between its conformers in Å,
            NaN for those that cannot be compared. Empty unless ``within_texts``.
    """

    passed: Bools
    passed_by_3dmolgen: Bools
    why: list[str]
    checked: Bools
    valid: Bools
    valid_geometry: Bools
    faults: list[list[str]]
    stereocentres: Integers
    stereocentres_right: Integers
    double_bonds: Integers
    double_bonds_right: Integers
    stereo_unchecked: Integers
    clashing: Bools
    bad_bonds: Bools
    bad_angles: Bools
    bent_aromatic_rings: Bools
    flat_rings: Bools
    bent_double_bonds: Bools
    fragmented: Bools
    flat: Bools
    planar: Bools
    clashes: Integers
    rmsd: list[Floats]
    rmsd_to_nearest: Floats
    nearest_reference: Integers
    bond_error: Floats
    references: Integers
    duplicate_of: Integers
    reward: Floats
    text: Integers
    place: Integers
    conformers_in_text: Integers
    group: Integers
    group_smiles: list[str]
    group_conformers: Integers
    group_usable: Integers
    group_references: Integers
    coverage_recall: Floats
    coverage_precision: Floats
    matching_recall: Floats
    matching_precision: Floats
    rmsd_upper_bounds: Integers
    thresholds: Floats
    draws: Integers
    hit_thresholds: Floats
    cluster_thresholds: Floats
    group_hits: Floats
    group_references_hit: Floats
    group_hits_of_conformers: Floats
    group_best_rmsd: Floats
    clusters: Integers
    group_clusters: Integers
    group_singletons: Integers
    group_entropy: Floats
    group_effective_clusters: Floats
    group_evenness: Floats
    group_torsion_spread: Floats
    group_heavy_atoms: Integers
    group_rotatable_bonds: Integers
    within: list[Floats]

    def __init__(self, arrays: dict[str, Any], thresholds: Floats) -> None:
        ends = np.cumsum([0, *arrays.pop("rmsd_lengths")])
        flat = arrays.pop("rmsd_flat")
        sizes = arrays.pop("within_lengths")
        between, borders = arrays.pop("within_flat"), np.cumsum([0, *(size * size for size in sizes)])
        arrays.pop("warnings")
        self._ensembles: str = arrays.pop("ensembles")
        self.__dict__.update(arrays)
        self.within = [
            between[begin:end].reshape(size, size)
            for size, (begin, end) in zip(sizes, pairwise(borders), strict=True)
        ]
        self.rmsd = [flat[begin:end] for begin, end in pairwise(ends)]
        self.thresholds = thresholds

    def __len__(self) -> int:
        return len(self.passed)

    def completions(self) -> list[Completion]:
        """The texts, each with the arrays of its conformers, for rewards of whole completions (`moldrift.rewards`).

        Raises:
            DriftError: if the judge did not compare the conformers of a text with one another, or read only the first
                of several.
        """
        if len(self) and not self.within:
            raise DriftError('within_texts: is off; give Judge within_texts=True, and conformers="all"')
        judged = np.bincount(self.text, minlength=1)
        if (judged[self.text] < self.conformers_in_text).any():
            raise DriftError('conformers: is first, and a text has several; give Judge conformers="all"')
        return _completions_of(self, self.within)

    def __repr__(self) -> str:
        passed, valid = int(self.passed.sum()), int(self.valid.sum())
        return f"Scores({len(self)} conformers, {passed} passed, {valid} valid, {len(self.group_smiles)} molecules)"


@dataclass(frozen=True)
class Completion:
    """The conformers of one text, in their order.

    Attributes:
        smiles: the SMILES of the prompt.
        rmsd: float [conformers, references], in Å; NaN for conformers that cannot be compared.
        within: float [conformers, conformers], the RMSDs between the conformers, in Å; NaN as in ``rmsd``.
        rows: the rows of the text in the arrays of `scores`.
        scores: the scores of its batch.
    """

    smiles: str
    rmsd: Floats
    within: Floats
    rows: slice
    scores: Scores

    def __len__(self) -> int:
        return len(self.rmsd)

    def of(self, name: str) -> npt.NDArray[np.generic]:
        """The part of an array of `Scores` that belongs to this text, ``[conformers]`` or ``[conformers, …]``."""
        array = getattr(self.scores, name, None)
        if not isinstance(array, np.ndarray) or array.ndim == 0 or len(array) != len(self.scores):
            raise DriftError(f"{name}: is no array of the scores with a row for each conformer")
        return array[self.rows]

    @property
    def passed(self) -> Bools:
        """bool [conformers], whether a conformer has the molecule of the prompt and three numbers after each atom."""
        return self.scores.passed[self.rows]

    @property
    def nearest(self) -> Floats:
        """float [conformers], the RMSD to the nearest reference; NaN without one."""
        return self.scores.rmsd_to_nearest[self.rows]


def _completions_of(scores: Scores, within: Sequence[Floats]) -> list[Completion]:
    """The completions of a batch. ``within`` has the distances of each text."""
    found = []
    begin = 0
    for distances in within:
        rows = slice(begin, begin + len(distances))
        smiles = scores.group_smiles[int(scores.group[begin])]
        found.append(Completion(smiles, np.stack(scores.rmsd[rows]), distances, rows, scores))
        begin = rows.stop
    return found
