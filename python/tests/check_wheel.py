"""Checks a wheel: what is in it, and that it runs where manylinux2014 does if its name says so.

    python python/tests/check_wheel.py moldrift-0.1.0-cp310-abi3-manylinux2014_x86_64.whl

The symbols of the C library that the extension needs are read from its ELF file, and the newest is shown.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

#: What a wheel must hold, beside the extension.
FILES = (
    "moldrift/__init__.py",
    "moldrift/_lib.pyi",
    "moldrift/py.typed",
    "licenses/LICENSE-APACHE",
    "licenses/LICENSE-MIT",
)
#: The largest wheel, in bytes, and how much the program adds.
MOST_BYTES, PROGRAM_BYTES = 12 << 20, 20 << 20


def glibc(binary: bytes) -> tuple[int, ...]:
    """The newest version of the C library that a binary asks for; (0,) if it asks for none.

    >>> glibc(b"GLIBC_2.2.5 and GLIBC_2.17")
    (2, 17)
    """
    versions = [tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_(\d+(?:\.\d+)+)", binary)]
    return max(versions, default=(0,))


def promised(wheel: str) -> tuple[int, ...] | None:
    """The version of the C library that a wheel's name promises to do with.

    >>> promised("a-1-cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    (2, 17)
    """
    found = re.search(r"manylinux_(\d+)_(\d+)_", wheel)
    return (int(found[1]), int(found[2])) if found else None


#: Kinds of machines by their numbers in an ELF file.
MACHINES = {62: "x86_64", 183: "aarch64"}


def machine(binary: bytes) -> str | None:
    """The kind of machine that an ELF file is for, if it is one that is known.

    >>> machine(b"\\x7fELF" + bytes(14) + b"\\xb7\\x00")
    'aarch64'
    """
    return MACHINES.get(int.from_bytes(binary[18:20], "little")) if binary.startswith(b"\x7fELF") else None


def check(path: Path) -> str:
    """What is wrong ends the program; else what there is, in a line."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        missing = [file for file in FILES if not any(name.endswith(file) for name in names)]
        assert not missing, f"{path.name}: lacks {missing}"
        strange = [name for name in names if re.search(r"(^|/)(tests|examples|src|__pycache__)/", name)]
        assert not strange, f"{path.name}: holds {strange}"
        (extension,) = (name for name in names if name.endswith((".so", ".pyd")))
        assert "abi3" in extension or extension.endswith(".pyd"), (
            f"{extension}: not for every Python from 3.10 on"
        )
        binaries = [extension, *(name for name in names if name.endswith(".data/scripts/drift"))]
        needed = max(glibc(wheel.read(name)) for name in binaries)
        machines = {machine(wheel.read(name)) for name in binaries}
        modes = {name: wheel.getinfo(name).external_attr >> 16 for name in binaries[1:]}
        assert all(mode & 0o111 == 0o111 for mode in modes.values()), f"{modes}: not executable"
    size, most = path.stat().st_size, promised(path.name)
    limit = MOST_BYTES + PROGRAM_BYTES * (len(binaries) - 1)
    assert size <= limit, f"{path.name}: {size} bytes, more than {limit}"
    assert most is None or needed <= most, f"{path.name}: needs glibc {needed}, promises {most}"
    kinds = {f"_{one}." in path.name for one in machines if one}
    assert kinds <= {True}, f"{path.name}: holds binaries of {sorted(map(str, machines))}"
    program = "with" if len(binaries) > 1 else "without"
    version = ".".join(map(str, needed))
    return f"{path.name}: {size / 2**20:.1f} MiB, glibc {version}, {len(names)} files, {program} the program"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(check(Path(argument)))
