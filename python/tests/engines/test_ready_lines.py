"""The block of docs/vllm.md for vLLM runs as it stands, from the root of the repository, in an interpreter of its own.

`python/tests/test_pages.py` runs the others."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
ETHANOL = re.compile(r"\[CONFORMER\]\[C\]<[-0-9.,]+>\[C\]<[-0-9.,]+>\[O\]<[-0-9.,]+>\[/CONFORMER\]")


def block(name: str) -> str:
    """A block of the page by what stands behind its ``python``."""
    page = (REPOSITORY / "docs/vllm.md").read_text(encoding="utf-8")
    [code] = re.findall(rf"^```python {name}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return str(code)


def run(name: str, folder: Path, *needed: str) -> str:
    """What a block prints; skipped where a module that it needs is not installed."""
    for module in needed:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    script = folder / f"{name}_lines.py"
    script.write_text(block(name), encoding="utf-8")
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ}
    ran = subprocess.run(
        [sys.executable, str(script)],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


@pytest.mark.slow
def test_vllm(tmp_path: Path) -> None:
    assert ETHANOL.search(run("vllm", tmp_path, "moldrift", "vllm"))
