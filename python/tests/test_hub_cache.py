"""Models by name: drift looks where ``huggingface_hub`` looks, and finds the snapshots that it finds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

huggingface_hub = pytest.importorskip("huggingface_hub")

Drift = Callable[..., Any]

#: What says where the cache is.
VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME")

TEXT = "[C]<0.5000,-0.2000,0.0000>"


def set_only(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Sets these of the variables, and no others."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("first", range(len(VARIABLES)))
def test_the_cache_is_where_huggingface_hub_has_it(
    drift: Drift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    values = [str(tmp_path / "hub"), str(tmp_path / "old"), "~/hf", str(tmp_path / "xdg"), str(tmp_path)]
    set_only(monkeypatch, dict(zip(VARIABLES[first:], values[first:], strict=True)))
    script = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    theirs = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    refused = drift("inspect", "--tokenizer", "nobody/nothing", TEXT)
    assert refused.returncode == 2
    words = f"in the Hugging Face cache, {theirs.stdout.strip()}; fetch it: hf download nobody/nothing"
    assert refused.stderr.strip().endswith(words), refused.stderr


def test_snapshots_are_those_that_huggingface_hub_finds(
    drift: Drift, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub.file_download import repo_folder_name

    cache = tmp_path / "hub"
    set_only(monkeypatch, {"HF_HUB_CACHE": str(cache), "HOME": str(tmp_path)})
    commits = ["0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"]
    folder = cache / repo_folder_name(repo_id="Some-Org/a.model_1", repo_type="model")
    for commit, tokenizer in zip(commits, ("qwen-like", "qwen-like-fused"), strict=True):
        (folder / "blobs").mkdir(parents=True, exist_ok=True)
        (folder / "blobs" / tokenizer).write_bytes(
            (repository / "tokenizers" / tokenizer / "tokenizer.json").read_bytes()
        )
        (folder / "snapshots" / commit).mkdir(parents=True)
        os.symlink(f"../../blobs/{tokenizer}", folder / "snapshots" / commit / "tokenizer.json")
    for ref, commit in (("main", commits[0]), ("v2", commits[1]), ("refs/pr/3", commits[1])):
        (folder / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (folder / "refs" / ref).write_text(commit)

    def tokens(name: str) -> str:
        run = drift("inspect", "--json", "--tokenizer", name, TEXT)
        assert run.returncode == 0, run.stderr
        return str(run.stdout)

    for revision in (None, "main", "v2", "refs/pr/3", *commits):
        theirs = huggingface_hub.snapshot_download(
            "Some-Org/a.model_1", revision=revision, cache_dir=cache, local_files_only=True
        )
        name = "Some-Org/a.model_1" + (f"@{revision}" if revision else "")
        assert tokens(name) == tokens(theirs), revision
    assert tokens("Some-Org/a.model_1") != tokens("Some-Org/a.model_1@v2")
