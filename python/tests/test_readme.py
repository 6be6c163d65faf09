"""The README's blocks of Python run as they stand, from the root of the repository."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest


def blocks(readme: Path) -> list[str]:
    """The blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a block prints, run in a folder."""
    monkeypatch.chdir(folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    return printed.getvalue()


def test_ten_lines_end_with_a_legal_molecule(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    code = blocks(repository / "python/README.md")[0]
    assert len([line for line in code.splitlines() if line.strip()]) == 10
    printed = run(code, repository, monkeypatch).splitlines()
    assert printed[0].startswith("[CONFORMER][C]<")
    assert printed[-1] == "1 of 1 passed"


def test_a_batch_in_fewer_passes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    printed = run(blocks(repository / "python/README.md")[1], repository, monkeypatch)
    assert printed.count("[/CONFORMER]") == 2
    assert printed.strip().endswith(" passes")


def test_reports_become_tables(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    printed = run(blocks(repository / "python/README.md")[2], repository, monkeypatch)
    assert printed.startswith("0.0000,0.0000,0.0000\n")
    assert "truncated_blocks" in printed
