"""Texts that drift did not write in one table: transformers and vLLM, each with and without the automaton (docs/rows.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
moldrift = pytest.importorskip("moldrift")
REPOSITORY = Path(__file__).resolve().parents[3]
MODEL = "eval/small-bins"
SMILES = ("CCO", "C#CC1(C#N)CN(C)C1", "CC(=O)NC", "C1CC1O")


def texts(script: str, folder: Path, name: str, *options: str) -> list[dict[str, str]]:
    """The lines that an example of the package writes."""
    (folder / "molecules.smi").write_text("\n".join(SMILES))
    path = folder / f"{name}.jsonl"
    command = [
        sys.executable,
        f"python/examples/{script}",
        "--model",
        MODEL,
        "-n",
        "2",
        "--temperature",
        "1.5",
    ]
    command += ["--smiles", str(folder / "molecules.smi"), "-o", str(path), *options]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", **os.environ}
    ran = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 2 * len(SMILES)
    return lines


def check(rows: dict[str, list[dict[str, str]]], folder: Path) -> None:
    """One table of the rows, the same from files and from lists; texts of the automaton all pass."""
    options = {"references": "small", "model": REPOSITORY / MODEL, "against_row": next(iter(rows))}
    files = [folder / f"{name}.jsonl" for name in rows]
    report = moldrift.audit(files, row_field="file", **options)
    runs = {Path(run["lp"]).stem: run for run in report.runs}
    assert runs.keys() == rows.keys()
    for name, run in runs.items():
        assert run["samples"] == 2 * len(SMILES)
        assert name.endswith("plain") or run["passed"] == run["samples"], name
    assert len(report.comparisons) == len(rows) - 1
    assert not any(pair.get("unpaired") for pair in report.comparisons)
    assert report.advice
    # The same from lists of strings.
    strings = {name: [line["text"] for line in lines] for name, lines in rows.items()}
    listed = moldrift.audit(strings, smiles=SMILES, **options)
    same = ("passed_difference", "identical", "well_formed_without", "bond_error_difference_angstrom")
    for pair, other in zip(report.comparisons, listed.comparisons, strict=True):
        assert [pair[name] for name in same] == [other[name] for name in same]


def test_transformers_with_and_without_the_processor(tmp_path: Path) -> None:
    rows = {
        name: texts("transformers_generate.py", tmp_path, name, "--max-new-tokens", "300", *options)
        for name, options in (
            ("transformers-plain", ("--plain",)),
            ("transformers-automaton", ()),
        )
    }
    check(rows, tmp_path)


@pytest.mark.slow
def test_vllm_with_and_without_the_grammar(tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    options = ("--max-tokens", "300", "--dtype", "float32")
    rows = {
        "transformers-plain": texts(
            "transformers_generate.py", tmp_path, "transformers-plain", "--plain", "--max-new-tokens", "300"
        ),
        "vllm-plain": texts("vllm_offline.py", tmp_path, "vllm-plain", "--plain", *options),
        "vllm-grammar": texts("vllm_offline.py", tmp_path, "vllm-grammar", *options),
    }
    check(rows, tmp_path)
