"""Reads and writes 3DMolGen's pickles of generated molecules, ``generation_results.pickle``. Needs RDKit.

The layout is ``{geom_smiles: [molecule]}``, in a shard ``{"generations": {…}, "stats": {…}}``. A pickle only contains
texts that could be read as molecules; texts that failed are missing.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from moldrift.errors import DriftError
from moldrift.reports import Path, Paths, _paths

__all__ = ["read_generations", "write_generations"]

#: An atom of a SMILES.
_ATOM = re.compile(r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]")
_BARE = re.compile(r"\[(Br|Cl|[BCNOPSFIbcnops])\]")
_BLOCK = re.compile(r"<([^>]*)>")
#: What the pickles may name: classes of molecules, of arrays and of containers.
_KNOWN = {
    "rdkit.Chem.rdchem": ("Mol", "RWMol"),
    "rdkit.Chem": ("Mol", "RWMol"),
    "rdkit.Chem.PropertyMol": ("PropertyMol",),
    "collections": ("Counter", "OrderedDict", "defaultdict"),
    "builtins": ("dict", "float", "int", "list", "set", "tuple"),
    "copyreg": ("_reconstructor",),
    "numpy": ("dtype", "ndarray"),
    "numpy.core.multiarray": ("_reconstruct", "scalar"),
    "numpy._core.multiarray": ("_reconstruct", "scalar"),
    "numpy.core.numeric": ("_frombuffer",),
    "numpy._core.numeric": ("_frombuffer",),
}


class _Unpickler(pickle.Unpickler):
    """Only makes objects of RDKit and NumPy, and containers."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in _KNOWN.get(module, ()):
            raise pickle.UnpicklingError(f"names {module}.{name}, which is no molecule")
        return super().find_class(module, name)


def read_generations(paths: Paths) -> tuple[list[str], list[str]]:
    """The SMILES and texts of pickles of generated molecules, whole or in shards, or of folders with pickles.

    Texts are in the fixed dialect with atoms in RDKit's order. Numbers are rounded to four decimals, since RDKit's
    pickles contain 32-bit floats. `moldrift.Judge` takes both lists; so does ``moldrift.audit(texts, smiles=smiles)``.

    Raises:
        DriftError: if a file is not such a pickle.
    """
    smiles: list[str] = []
    texts: list[str] = []
    for path in _files(paths):
        try:
            with open(path, "rb") as file:
                found = _Unpickler(file).load()
        except (pickle.UnpicklingError, EOFError, AttributeError, IndexError, ImportError, OSError) as error:
            raise DriftError(f"{path}: no pickle of generated molecules: {error}") from None
        found = found.get("generations", found) if isinstance(found, dict) else found
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise DriftError(
                f"{path}: no dict from SMILES to molecules; give generation_results.pickle or a shard of it"
            )
        for key, molecules in found.items():
            for molecule in molecules:
                smiles.append(key)
                texts.append(_text_of(path, key, molecule))
    return smiles, texts


def write_generations(path: Path, smiles: Sequence[str], texts: Iterable[str], passed: Iterable[bool]) -> int:
    """Writes the texts that passed as a pickle of 3DMolGen, under their SMILES, and returns their number.

    ``passed`` comes from `moldrift.Scores`. Each text has one conformer, in the fixed or the stripped dialect.
    """
    from rdkit import Chem

    molecules: dict[str, list[Any]] = {}
    for key, text, is_good in zip(smiles, texts, passed, strict=True):
        if is_good:
            inside = text.split("[CONFORMER]")[-1].split("[/CONFORMER]")[0]
            molecule = Chem.MolFromSmiles(_BARE.sub(r"\1", _BLOCK.sub("", inside)))
            conformer = Chem.Conformer(molecule.GetNumAtoms())
            for atom, block in enumerate(_BLOCK.findall(inside)):
                conformer.SetAtomPosition(atom, [float(number) for number in block.split(",")])
            molecule.AddConformer(conformer)
            molecules.setdefault(key, []).append(molecule)
    target = FilePath(path)
    half = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        half.write_bytes(pickle.dumps(molecules))
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
    return sum(map(len, molecules.values()))


def _files(paths: Paths) -> list[str]:
    """The pickles; in a folder they are sorted by name."""
    files: list[str] = []
    for path in _paths("paths", paths):
        folder = FilePath(path)
        if folder.is_dir():
            inside = sorted(str(one) for one in folder.rglob("*") if one.suffix in (".pickle", ".pkl"))
            if not inside:
                raise DriftError(f"{path}: holds no .pickle or .pkl; give a folder of generated molecules")
            files += inside
        else:
            files.append(path)
    return files


def _text_of(path: str, smiles: str, molecule: Any) -> str:
    from rdkit import Chem

    try:
        bare = Chem.RemoveHs(molecule)
        written = Chem.MolToSmiles(bare)
        order = list(bare.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
        points = iter(np.asarray(bare.GetConformer().GetPositions())[order])
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DriftError(f"{path}: {smiles}: a molecule that RDKit cannot write: {error}") from None

    def atom(match: re.Match[str]) -> str:
        shown = match.group(0)
        x, y, z = next(points)
        # A zero is written without a sign.
        numbers = ",".join(f"{number:.4f}".replace("-0.0000", "0.0000") for number in (x, y, z))
        return (shown if shown.startswith("[") else f"[{shown}]") + f"<{numbers}>"

    return f"[CONFORMER]{_ATOM.sub(atom, written)}[/CONFORMER]"
