"""Makes a wheel that needs no Rust where it is installed, nor a C compiler: the package and the ``drift`` program in one file.

    pip install --requirement python/requirements-wheel.txt
    python python/wheel.py dist

Both are linked by zig against glibc 2.17 (``manylinux2014``), so that the wheel runs on every Linux since CentOS 7. Making it
needs Rust, and takes some ten minutes on two cores. `check_wheel.py` looks at the result.

    python python/wheel.py dist --machine aarch64

makes the wheel of the other kind of machine, for which Rust needs ``rustup target add aarch64-unknown-linux-gnu``.

    python python/wheel.py dist --wheel moldrift-….whl --program target/release/drift

adds a program that was built already to a wheel that was built already, and takes a second.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
#: The oldest C library that manylinux2014 allows.
GLIBC = "2.17"
#: A regular file that everyone may execute: pip and uv install scripts with these permissions.
MODE = 0o100755 << 16


def built(folder: Path, machine: str) -> tuple[Path, Path]:
    """Builds the wheel without a program, and the program, for a kind of machine."""
    target = f"{machine}-unknown-linux-gnu"
    # Symbols are only for debuggers. The linker leaves them out: the machine's own `strip` knows no other machine's programs.
    profile = {"CARGO_PROFILE_RELEASE_STRIP": "symbols"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **profile, "PATH": path}

    def run(*command: str) -> None:
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)

    run("cargo", "zigbuild", "--locked", "--release", "--bin", "drift", "--target", f"{target}.{GLIBC}")
    run(
        *("maturin", "build", "--locked", "--release", "--zig", "--compatibility", "manylinux2014"),
        *("--target", target),
        *("--manifest-path", "python/Cargo.toml", "--out", str(folder)),
    )
    [wheel] = folder.glob("moldrift-*.whl")
    targets = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return wheel, targets / target / "release" / "drift"


def stripped(program: Path, folder: Path) -> bytes:
    """A program of this machine without symbols."""
    copy = folder / "drift"
    shutil.copy(program, copy)
    if shutil.which("strip"):
        subprocess.run(["strip", str(copy)], check=True)
    return copy.read_bytes()


def with_program(wheel: Path, program: bytes, out: Path) -> Path:
    """A copy of the wheel in `out` that installs the program among the scripts of its environment."""
    name = "-".join(wheel.name.split("-")[:2])
    script, record = f"{name}.data/scripts/drift", f"{name}.dist-info/RECORD"
    digest = base64.urlsafe_b64encode(hashlib.sha256(program).digest()).rstrip(b"=").decode()
    made = out / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == record:
                content = f"{script},sha256={digest},{len(program)}\n".encode() + content
            new.writestr(info, content, compresslevel=9)
        entry = zipfile.ZipInfo(script)
        entry.external_attr, entry.compress_type = MODE, zipfile.ZIP_DEFLATED
        new.writestr(entry, program, compresslevel=9)
    return made


def main() -> None:
    """Builds, or takes what was built, and checks the result."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("out", type=Path, help="the folder for the wheel")
    words.add_argument(
        "--machine",
        default=platform.machine(),
        help="the kind of machine, such as aarch64; by default this one's",
    )
    words.add_argument("--wheel", type=Path, help="a wheel of the package that was built already")
    words.add_argument("--program", type=Path, help="a program that was built already")
    given = words.parse_args()
    if (given.wheel is None) != (given.program is None):
        words.error("give both --wheel and --program, or neither")
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if given.wheel:
            wheel, program = given.wheel, stripped(given.program, Path(folder))
        else:
            wheel, built_program = built(Path(folder), given.machine)
            program = built_program.read_bytes()
        made = with_program(wheel, program, given.out)
    subprocess.run(
        [sys.executable, str(Path(__file__).parent / "tests/check_wheel.py"), str(made)], check=True
    )


if __name__ == "__main__":
    main()
