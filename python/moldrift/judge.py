"""A judge in memory. It gets references once, then texts in batches, and gives verdicts, distances and a reward.

It judges each text as ``moldrift.audit`` does, with the same functions of drift and the same results to the bit. It
runs on all cores without the interpreter's lock (GIL), writes no file, and returns NumPy arrays.

>>> judge = Judge({"CCO": ["[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,0.0000>"]})
>>> good = "[CONFORMER][C]<-1.2500,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1500,-0.3500,0.0000>[/CONFORMER]"
>>> s = judge.score(["CCO", "CCO"], [good, "[CONFORMER][C]<1.0000,2.0000"])
>>> s.passed, s.valid, s.why
(array([ True, False]), array([ True, False]), ['', 'no end: no [/CONFORMER]'])
>>> s.rmsd[0].round(3), s.rmsd[1]
(array([0.02]), array([nan]))
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import moldrift._lib as _lib
from moldrift.arguments import is_text, named_fields, number, numbers, smiles_text, whole_numbers
from moldrift.errors import DriftError
from moldrift.reports import Isotopes, OpenStereo, Path, Paths, Progress, _paths, _reading, _smiles, _watched
from moldrift.scores import Scores

__all__ = ["Judge", "read_matrix"]

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Judge:
    """Judges texts in memory, compared with references that it gets once.

    Args:
        references: a dict from a SMILES to its conformers, or files and folders in any format that drift reads, or None.
            The conformers of a SMILES are one, or a sequence, of:

            - enriched text, with or without tags, in this ``encoding``,
            - arrays ``[conformers, heavy atoms, 3]`` or ``[heavy atoms, 3]`` in Å, without hydrogens, with atoms in the
              order of the SMILES,
            - RDKit molecules with all their conformers, with atoms in any order; hydrogens are ignored.

            The references of a molecule are found by the exact text of its SMILES, as in prompts. Texts and RDKit
            molecules may be another isomer or spelling of the SMILES, such as those that GEOM pools under one key;
            their atoms are put into its order.
        encoding: how texts are written: ``fixed``, ``fixed-N``, ``stripped``, ``stripped-N``, ``lines``, ``lines-N``,
            ``integers:SCALE,DIGITS``, ``binned-v1:LOW,HIGH,STEP``, ``binned-v2:LOW,HIGH,STEP``, ``fsq:N``, or the path
            of a file.
        threshold, thresholds: the thresholds of coverage, in Å; by default 0.75.
        hits: the thresholds in Å of Hit@K; `Scores.group_hits` and `Judge.hits` have it.
        at: the numbers K of texts.
        clusters: the thresholds in Å of greedy clusters; `Scores.clusters` and `Judge.clusters` have them.
        within_texts: whether to compare the conformers of each text with one another, for rewards of whole texts.
        duplicates: conformers of one molecule whose RMSD is below this, in Å, are the same; 0 finds no duplicates.
        reward: the parts of the reward by name, with their weights; ``Scores.reward`` is their weighted sum.
            ``docs/rewards.md`` defines the parts. All are between 0 and 1, and 0 for a text that does not pass.
        conformers: ``first`` judges the first conformer of a text, ``all`` judges each of them, with one row each.
        molecules: a list of SMILES; of files only the references of these molecules are kept in memory. By default all.
        max_atoms: the largest number of heavy atoms of a molecule that is compared; by default 1,000.
        isotopes: whether labels such as ``[13CH3]`` and ``[2H]`` tell molecules and their atoms apart.
        smiles_of, property, name_property, name_column, smiles_column, open_stereo, progress: how files of references
            are read, as in `mine`.

    Raises:
        DriftError: if references cannot be read, belong to another molecule, have another number of atoms, or contain a
            number that is not finite.
    """

    def __init__(
        self,
        references: Mapping[str, Any] | Paths | None = None,
        encoding: str = "fixed",
        *,
        threshold: float | None = None,
        thresholds: float | Iterable[float] | None = None,
        hits: float | Iterable[float] = (),
        at: int | Iterable[int] = (1, 5, 10),
        clusters: float | Iterable[float] = (),
        within_texts: bool = False,
        duplicates: float = 0.125,
        reward: Mapping[str, float] | None = None,
        conformers: Literal["first", "all"] = "first",
        molecules: Iterable[str] | None = None,
        max_atoms: int | None = None,
        isotopes: Isotopes = "ignore",
        smiles_of: Path | None = None,
        property: str | None = None,
        name_property: str | None = None,
        name_column: str | None = None,
        smiles_column: str | None = None,
        open_stereo: OpenStereo = "keep",
        progress: Progress = False,
    ) -> None:
        if threshold is not None and thresholds is not None:
            raise DriftError("thresholds: threshold is given too; give one of them")
        angstrom = "lengths in Å"
        found = threshold if threshold is not None else thresholds if thresholds is not None else ()
        given = numbers("thresholds", found, angstrom)
        if reward is not None and not isinstance(reward, Mapping):
            raise DriftError(f"reward: {reward!r} is no dict; give parts with weights, {{'valid': 1.0}}")
        if thresholds is not None and not given:
            raise DriftError("thresholds: there is none; give some in Å, or leave it out")
        smiles_options = _smiles(smiles_of, property, name_property, name_column, smiles_column, open_stereo)
        options = {
            "reading": _reading(smiles_options, "keep", None, None, encoding),
            "thresholds": given,
            "hits": numbers("hits", hits, angstrom),
            "at": whole_numbers("at", at, "numbers of texts"),
            "clusters": numbers("clusters", clusters, angstrom),
            "within_texts": within_texts,
            "duplicates": number("duplicates", duplicates, "a length in Å"),
            "conformers": conformers,
            "reward": [
                (str(part), number(f"reward {part}", weight, "the weight of the part"))
                for part, weight in (reward or {}).items()
            ],
            "max_atoms": max_atoms,
            "isotopes": isotopes,
        }
        with named_fields():
            self._judge = _lib.Judge(options)
        self._thresholds = self._judge.thresholds()
        self._has_warned = False
        #: The number of records in files that could not be read.
        self.skipped = 0
        if isinstance(references, Mapping):
            for smiles, conformers_of_it in references.items():
                self._add(smiles, conformers_of_it)
        elif references is not None:
            wanted = [molecules] if isinstance(molecules, str) else molecules
            wanted = None if wanted is None else list(wanted)
            with _watched(progress) as watch:
                self.skipped = self._judge.add_paths(_paths("references", references), wanted, watch)

    @property
    def thresholds(self) -> Floats:
        """The thresholds of coverage, in Å, ascending."""
        return self._thresholds

    @property
    def molecules(self) -> dict[str, int]:
        """The molecules that have references, with the number of references."""
        return dict(self._judge.references())

    def score(self, smiles: str | Sequence[str], texts: str | Sequence[str]) -> Scores:
        """Judges texts. There is one SMILES per text, or one SMILES for all texts.

        A text may have tags or not, and may include the prompt, worked examples before it, and a special token after it.
        The texts of one SMILES form a group, for which duplicates, coverage and matching are computed.

        Raises:
            DriftError: if the numbers of SMILES and texts differ, one of ``smiles`` is not a SMILES, or the reward needs
                references and a molecule has none.
        """
        given = [texts] if isinstance(texts, str) else list(texts)
        prompts = [smiles] * len(given) if isinstance(smiles, str) else list(smiles)
        for place, listed in (("smiles", prompts), ("texts", given)):
            wrong = next((at for at, one in enumerate(listed) if not is_text(one)), None)
            if wrong is not None:
                raise DriftError(f"{place}: {wrong} is {listed[wrong]!r:.40}, no text; give strings")
        arrays = self._judge.score(prompts, given)
        if arrays["warnings"] and not self._has_warned:
            self._has_warned = True
            for warning in arrays["warnings"]:
                warnings.warn(warning, stacklevel=2)
        return Scores(arrays, self._thresholds)

    def coverage(self, scores: Scores, missing: Literal["zero", "leave-out"] = "zero") -> dict[str, Any]:
        """Coverage and matching over molecules, with the fields and rules of the ``coverage`` of `moldrift.audit`.

        With ``missing="zero"`` a molecule that has references counts 0 in COV if it has no text in ``scores``, or none that
        can be compared. With ``leave-out`` such molecules are left out. MAT is over the molecules with a text to compare.

        Returns:
            a dict: ``molecules``, the number of molecules that COV is over; ``without_text``, the SMILES of molecules with
            references and without a text; ``thresholds``, a list of ``{"angstrom", "cov_r", "cov_p"}``; ``mat_r`` and
            ``mat_p`` in Å. Each figure is ``{"mean", "median"}``, or None over no molecule.
        """
        if missing not in ("zero", "leave-out"):
            raise DriftError(f"missing: `{missing}` is none of its words; give zero or leave-out")
        without = self._judge.without_texts(list(scores.group_smiles))
        kept = scores.group_references > 0
        if missing == "leave-out":
            kept &= scores.group_usable > 0
        zeros = np.zeros((len(without) if missing == "zero" else 0, len(self._thresholds)))
        recall, precision = (
            np.concatenate([np.nan_to_num(shares[kept]), zeros])
            for shares in (scores.coverage_recall, scores.coverage_precision)
        )
        return {
            "molecules": len(recall),
            "without_text": without,
            "thresholds": [
                {"angstrom": float(angstrom), "cov_r": _over(recall[:, at]), "cov_p": _over(precision[:, at])}
                for at, angstrom in enumerate(self._thresholds)
            ],
            "mat_r": _over(scores.matching_recall[kept]),
            "mat_p": _over(scores.matching_precision[kept]),
        }

    def hits(self, scores: Scores, missing: Literal["zero", "leave-out"] = "zero") -> dict[str, Any]:
        """Hit@K over molecules, with the fields and rules of the ``hits`` of `moldrift.audit`: all molecules, and classes by
        rotatable bonds and heavy atoms. ``missing`` is that of `coverage`.

        Raises:
            DriftError: if the judge measures no hits.
        """
        if not scores.hit_thresholds.size:
            raise DriftError("hits: were not asked for; give Judge hits=, thresholds in Å")
        found: dict[str, Any] = json.loads(
            self._judge.hit_report(list(scores.group_smiles), scores._ensembles, missing)
        )
        return found

    def clusters(self, scores: Scores) -> dict[str, Any]:
        """Clusters and torsions over molecules with a conformer, with the fields and rules of the ``clusters`` of
        `moldrift.audit`.

        Raises:
            DriftError: if the judge finds no clusters.
        """
        if not scores.cluster_thresholds.size:
            raise DriftError("clusters: were not asked for; give Judge clusters=, thresholds in Å")
        found: dict[str, Any] = json.loads(
            self._judge.cluster_report(list(scores.group_smiles), scores._ensembles)
        )
        return found

    def _add(self, smiles: str, conformers: Any) -> None:
        """Adds the references of a molecule, of any kind, in their order."""
        for one in _each(smiles_text(smiles), conformers):
            if isinstance(one, str):
                self._judge.add_texts(smiles, [one])
            elif hasattr(one, "GetConformers"):
                self._judge.add_conformers(smiles, *_of_rdkit(smiles, one))
            else:
                self._judge.add_conformers(smiles, None, _of_array(smiles, one))


def _over(values: Floats) -> dict[str, float] | None:
    """The mean and the median over the molecules that have the figure."""
    known = values[~np.isnan(values)]
    return {"mean": float(known.mean()), "median": float(np.median(known))} if known.size else None


def _each(smiles: str, conformers: Any) -> Iterator[Any]:
    """Splits conformers into texts, molecules and arrays."""
    is_array = isinstance(conformers, np.ndarray) and conformers.dtype.kind not in "OSU"
    if isinstance(conformers, str) or is_array or hasattr(conformers, "GetConformers"):
        yield conformers
    elif isinstance(conformers, Iterable):
        found = list(conformers)
        kinds = [isinstance(one, str) or hasattr(one, "GetConformers") for one in found]
        if found and not any(kinds) and np.ndim(found[0]) < 2:
            # A nested list of numbers is one array.
            yield found
        else:
            yield from found
    else:
        problem = f"references of {smiles}: {type(conformers).__name__} is no text, array or molecule"
        raise DriftError(f"{problem}; give texts, arrays [conformers, heavy atoms, 3] or RDKit molecules")


def _of_array(smiles: str, array: Any) -> Floats:
    try:
        values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DriftError(f"references of {smiles}: no array of numbers: {error}") from None
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[2] != 3:
        shape = "×".join(map(str, np.shape(array)))
        raise DriftError(f"references of {smiles}: shape {shape}; give [conformers, heavy atoms, 3]")
    return _with_extent(smiles, values)


def _with_extent(smiles: str, positions: Any) -> Floats:
    """Conformers ``[conformers, heavy atoms, 3]``. Those whose atoms all stand at one place are refused: nobody set them."""
    values = np.ascontiguousarray(positions, dtype=np.float64)
    empty = np.flatnonzero((values == values[:, :1]).all(axis=(1, 2)))
    if values.shape[1] > 1 and len(empty):
        problem = f"references of {smiles}: all atoms of conformer {empty[0]} stand at one place"
        raise DriftError(f"{problem}; embed the molecule, or leave it out")
    return values


def _of_rdkit(smiles: str, molecule: Any) -> tuple[str, Floats]:
    """The SMILES that RDKit writes, and the positions in the order of this SMILES."""
    from rdkit import Chem

    try:
        bare = Chem.RemoveHs(molecule)
        written = Chem.MolToSmiles(bare)
        order = list(bare.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    except (KeyError, ValueError, RuntimeError) as error:
        raise DriftError(f"references of {smiles}: RDKit cannot write the molecule: {error}") from None
    drawn = [conformer.GetId() for conformer in bare.GetConformers() if not conformer.Is3D()]
    if drawn:
        problem = f"references of {smiles}: conformer {drawn[0]} is a 2D drawing of RDKit"
        raise DriftError(f"{problem}; embed the molecule, or leave it out")
    positions = [conformer.GetPositions()[order] for conformer in bare.GetConformers()]
    if not positions:
        raise DriftError(f"references of {smiles}: a molecule without a conformer; embed it, or leave it out")
    return written, _with_extent(smiles, positions)


def read_matrix(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """Reads an ``.npz`` of ``--matrix``: for each SMILES an array, float [texts, references], in Å. The rows of texts
    without a conformer are NaN."""
    with np.load(path) as arrays:
        shapes = list(zip(arrays["texts"].tolist(), arrays["references"].tolist(), strict=True))
        ends = np.cumsum([0, *(texts * references for texts, references in shapes)])
        flat = arrays["rmsd"]
        return {
            str(smiles): flat[begin:end].reshape(shape)
            for smiles, begin, end, shape in zip(arrays["smiles"], ends[:-1], ends[1:], shapes, strict=True)
        }
