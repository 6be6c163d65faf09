"""`python/benches/crystals.py` and its crystals, with a handful of steps where the script takes a quarter of an hour."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import built_program

BENCHES = Path(__file__).resolve().parents[1] / "benches"
Drift = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def prototypes(monkeypatch: pytest.MonkeyPatch) -> object:
    """The module of crystals."""
    monkeypatch.syspath_prepend(str(BENCHES))
    return __import__("prototypes")


def test_crystals_are_crystals(prototypes: object, drift: Drift, tmp_path: Path) -> None:
    """Their texts are `crystal-text` of their formulas but for `-0.00`, and no two atoms of them touch."""
    draw = random.Random(1)
    chosen = draw.sample(prototypes.crystals(), 300)  # type: ignore[attr-defined]
    assert {len(one.formula) for one in chosen} == {2, 3, 4}
    prompts = [json.dumps({"formula": dict(one.formula)}) for one in chosen]
    (tmp_path / "prompts.jsonl").write_text("\n".join(prompts))
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": one.text(draw)}) for one in chosen))
    files = [tmp_path / "texts.jsonl", "--skeleton", "crystal-text", "--prompts", tmp_path / "prompts.jsonl"]
    ran = drift("audit", *files, "--json", "--verdicts", tmp_path / "verdicts.jsonl")
    assert ran.returncode == 0, ran.stderr
    [row] = json.loads(ran.stdout)["rows"]
    assert row["texts"] == 300
    assert set(row["faults"]) == {"minus_zero"}
    assert 0 < row["faults"]["minus_zero"] < 45
    for line in (tmp_path / "verdicts.jsonl").read_text().splitlines():
        geometry = json.loads(line)["geometry"]
        # The shortest bond of all ions is 1.78 Å: Be and F.
        assert geometry is None or geometry["shortest_distance_angstrom"] > 1.4, line


@pytest.mark.program
def test_a_training_goes_on_from_its_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The weights are those of a training that was never interrupted, also if it was to be shorter at first."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    monkeypatch.syspath_prepend(str(BENCHES))
    crystals = __import__("crystals")
    draw = random.Random(2)
    rows = [([1, 2], [draw.randrange(3, 20) for _ in range(draw.randrange(4, 9))]) for _ in range(40)]
    shape = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}

    def weights(runs: list[float], folder: Path) -> object:
        folder.mkdir()
        for epochs in runs:
            torch.manual_seed(0)
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=20, **shape))
            done = crystals.train(model, rows, 4, epochs, folder / "checkpoint.pt", every=20)
            assert done.step == len(done.losses) == int(10 * epochs)
        return model.state_dict()

    whole, parts = weights([4], tmp_path / "whole"), weights([3, 4], tmp_path / "parts")
    # The last steps of the shorter one have another rate; its last checkpoint is from before them, or the test would fail.
    assert (tmp_path / "parts/checkpoint.pt").is_file()
    for name, values in whole.items():
        assert torch.equal(values, parts[name]), name


def test_shortest_distances_are_compared_formula_by_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "transformers"):
        pytest.importorskip(module)
    monkeypatch.syspath_prepend(str(BENCHES))
    crystals = __import__("crystals")

    def verdict(row: str, prompt: int, shortest: float | None) -> dict[str, object]:
        geometry = {"shortest_distance_angstrom": shortest}
        why = "composition" if row == "none" else None
        return {"row": row, "prompt": prompt, "generation": 0, "why": why, "geometry": geometry}

    verdicts = [verdict("none", 0, 2.0), verdict("none", 0, 0.4), verdict("none", 1, 1.0)]
    verdicts += [verdict("mask", 0, 2.0), verdict("mask", 0, 2.0), verdict("mask", 1, 0.1)]
    # No volume, and no partner.
    verdicts += [
        verdict("mask", 1, None),
        verdict("none", 2, 3.0),
        {**verdict("mask", 0, None), "geometry": None},
    ]
    [_, _, line] = crystals.distances(verdicts, ["none", "mask"]).splitlines()
    # Formula 0: -50 points and +0.8 Å, formula 1: +100 points and -0.9 Å.
    assert line.startswith("| `mask` | 2 | +25.0 [-50.0, +100.0] | -0.050 [-0.900, +0.800] | 1 of 1 |")


@pytest.mark.program
def test_the_script_trains_generates_and_judges(drift: Drift, tmp_path: Path) -> None:
    for module in ("torch", "transformers"):
        pytest.importorskip(module)
    sizes = {"crystals": 20, "batch": 4, "formulas": 2, "texts": 2, "longest": 150}
    few = [f"--{name}={size}" for name, size in sizes.items()]
    command = [
        sys.executable,
        BENCHES / "crystals.py",
        str(built_program()),
        tmp_path,
        *few,
        "--rows",
        "none",
        "skeleton",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert ran.returncode == 0, ran.stderr[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())
    none, skeleton = report["rows"]
    assert (none["row"], none["texts"], none["passed"]) == ("none", 4, 0)
    # A model that knows nothing may write more atoms than there is room for.
    assert set(skeleton["faults"]) <= {"cut"}
    assert ran.stdout.splitlines()[-1].startswith("| `skeleton` |")
    table = ran.stdout.splitlines()[-4:]
    assert len({line.count("|") for line in table}) == 1, table
    cells = table[-1].split("|")
    assert [cell.strip() for cell in cells[3:5]] == ["0.0", "0.0"]
    assert cells[6].strip() == "100.0"
