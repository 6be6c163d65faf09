"""The blocks of docs/engines.md run as they stand, from the root of the repository, each in an interpreter of its own."""

from __future__ import annotations

import importlib.util
import json
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
    page = (REPOSITORY / "docs/engines.md").read_text(encoding="utf-8")
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


def test_llguidance(tmp_path: Path) -> None:
    assert ETHANOL.search(run("llguidance", tmp_path, "moldrift", "llguidance", "transformers", "torch"))


def test_xgrammar(tmp_path: Path) -> None:
    assert ETHANOL.search(run("xgrammar", tmp_path, "moldrift", "xgrammar", "transformers", "torch"))


def test_sglang_request(tmp_path: Path) -> None:
    request = json.loads(run("sglang", tmp_path, "moldrift"))
    assert request["sampling_params"]["ebnf"].startswith("root ::= ")


@pytest.mark.slow
def test_vllm(tmp_path: Path) -> None:
    assert ETHANOL.search(run("vllm", tmp_path, "moldrift", "vllm"))
