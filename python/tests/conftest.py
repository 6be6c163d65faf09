"""What several tests need: the repository, the program, environments without either."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def built_program() -> Path | None:
    """The program: ``$DRIFT_BINARY``, else the newest that was built in the repository."""
    said = os.environ.get("DRIFT_BINARY")
    if said:
        return Path(said)
    built = [REPOSITORY / "target" / profile / "drift" for profile in ("release", "debug")]
    return max(
        (path for path in built if path.is_file()), key=lambda path: path.stat().st_mtime, default=None
    )


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's folder."""
    return REPOSITORY


@pytest.fixture(scope="session")
def drift() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the program with arguments; tests that need it are skipped where it was not built."""
    program = built_program()
    if program is None:
        pytest.skip("drift is not built: cargo build --release, or DRIFT_BINARY")

    def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
        words = [str(program), *map(os.fspath, map(str, arguments))]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    return run
