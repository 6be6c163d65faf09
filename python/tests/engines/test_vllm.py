"""vLLM follows exported grammars: both backends, every text legal and canonical."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("moldrift")
pytest.importorskip("vllm")
REPOSITORY = Path(__file__).resolve().parents[3]
TEXTS = 64


@pytest.mark.slow
def test_every_text_is_legal_and_canonical() -> None:
    command = [
        sys.executable,
        "python/benches/vllm_grammars.py",
        "--model",
        "eval/qwen-like",
        "--texts",
        str(TEXTS),
        "--json",
    ]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ}
    ran = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    rows = json.loads(ran.stdout.splitlines()[-1])
    exported = {row["backend"]: row for row in rows if row["constraint"] == "exported grammar"}
    assert exported.keys() == {"guidance", "xgrammar"}
    for backend, row in exported.items():
        assert (row["legal"], row["canonical"]) == (TEXTS, TEXTS), f"{backend}: {row}"
    # The model alone does worse, or the test would show nothing.
    assert all(row["canonical"] < TEXTS for row in rows if row["constraint"] == "none")
