"""``python -m moldrift …`` runs the ``drift`` program, if it was installed with the package or is on the ``PATH``."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

NO_PROGRAM = (
    "drift: this installation has the Python package alone; install a wheel of python/wheel.py, "
    "or the program with `cargo install --path .`"
)


def program() -> Path | None:
    """The program from this package's wheel, else the first one on the ``PATH``."""
    name = "drift.exe" if os.name == "nt" else "drift"
    try:
        files = importlib.metadata.files("moldrift") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    # Installers record in RECORD where they put the scripts of a wheel.
    places = [Path(str(file.locate())) for file in files if file.name == name]
    # `pip install --target` moves the scripts afterwards.
    places += [Path(sysconfig.get_path("scripts")) / name, Path(__file__).parents[1] / "bin" / name]
    found = next((place for place in places if place.is_file()), None)
    on_path = shutil.which("drift")
    return found.resolve() if found else Path(on_path) if on_path else None


def main() -> None:
    """Replaces this process by the program."""
    found = program()
    if found is None:
        sys.exit(NO_PROGRAM)
    command = [str(found), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(command, check=False).returncode)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
