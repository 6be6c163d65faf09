"""The package itself: what it exports, stubs, licences, metadata."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import moldrift
from moldrift import _lib

PACKAGE = Path(moldrift.__file__).parent


def public(names: list[str]) -> set[str]:
    """Names without an underscore in front."""
    return {name for name in names if not name.startswith("_")}


def imports(path: Path) -> set[str]:
    """The modules of the package that one of its files imports when it is imported itself."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "moldrift":
            submodules = {alias.name for alias in node.names if (PACKAGE / f"{alias.name}.py").exists()}
            found |= {f"moldrift.{name}" for name in submodules} | {"moldrift"}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.split(".")[0] == "moldrift"}


def test_modules_do_not_import_one_another_in_a_circle() -> None:
    edges = {
        f"moldrift.{path.stem}": imports(path) for path in PACKAGE.glob("*.py") if path.stem != "__init__"
    }
    edges["moldrift"] = imports(PACKAGE / "__init__.py")
    assert len(edges) > 20 and edges["moldrift"]
    # Modules that import nothing that is left are taken away, until nothing is.
    while free := {name for name, wanted in edges.items() if not wanted & edges.keys()}:
        edges = {name: wanted for name, wanted in edges.items() if name not in free}
    assert not edges, edges


def test_the_stub_names_what_the_extension_exports() -> None:
    tree = ast.parse((PACKAGE / "_lib.pyi").read_text(encoding="utf-8"))
    stubs: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = node.body if isinstance(node, ast.ClassDef) else []
            stubs[node.name] = public([item.name for item in inner if isinstance(item, ast.FunctionDef)])
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            stubs[node.target.id] = set()
    exported = {name: public(dir(getattr(_lib, name))) for name in public(dir(_lib))}
    assert stubs.keys() == exported.keys()
    for name, members in stubs.items():
        if inspect.isclass(getattr(_lib, name)):
            assert members == exported[name], name


def test_everything_public_says_what_it_is() -> None:
    silent = [
        name for name in moldrift.__all__ if name != "__version__" and not getattr(moldrift, name).__doc__
    ]
    assert silent == []
    assert [name for name in public(dir(_lib)) if name != "VERSION" and not getattr(_lib, name).__doc__] == []
    assert sorted(moldrift.__all__) == moldrift.__all__


def ran(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What Python does with arguments, where no other drift stands on the path."""
    given = {**os.environ, "PATH": "", **environment}
    return subprocess.run([sys.executable, *words], env=given, capture_output=True, text=True, check=False)


def test_the_package_is_the_program_too() -> None:
    """A wheel of `python/wheel.py` brings it; an installation without it says what to do."""
    done = ran("-m", "moldrift", "--version")
    files = importlib.metadata.files("moldrift") or []
    if any(file.name == "drift" for file in files):
        assert (done.returncode, done.stdout) == (0, f"drift {moldrift.__version__}\n")
        bad = ran("-m", "moldrift", "fit", "--corpus", "none.jsonl")
        assert bad.returncode == 2
        assert bad.stderr.startswith("drift: none.jsonl: ")
    else:
        assert done.returncode == 1
        assert "python/wheel.py" in done.stderr


def test_another_program_on_the_path_will_do(tmp_path: Path) -> None:
    from moldrift import __main__ as main

    if main.program() is not None:
        pytest.skip("the package has a program of its own, which goes first")
    (tmp_path / "drift").write_text("#!/bin/sh\necho own $1\n")
    (tmp_path / "drift").chmod(0o755)
    assert ran("-m", "moldrift", "fit", PATH=str(tmp_path)).stdout == "own fit\n"


def test_types_come_along() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "_lib.pyi").is_file()


def test_the_version_is_the_crates(repository: Path) -> None:
    manifest = (repository / "python/Cargo.toml").read_text(encoding="utf-8")
    assert f'version = "{moldrift.__version__}"' in manifest


def test_licences_are_those_of_the_repository(repository: Path) -> None:
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (repository / "python/licenses" / name).read_bytes() == (repository / name).read_bytes()


def test_the_installed_package_has_its_metadata() -> None:
    try:
        metadata = importlib.metadata.metadata("moldrift")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("moldrift is not installed")
    assert metadata["Version"] == moldrift.__version__
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert metadata.get_all("License-File") == ["licenses/LICENSE-MIT", "licenses/LICENSE-APACHE"]
    assert metadata["Requires-Python"] == ">=3.10"
    assert "# moldrift" in (metadata.get_payload() or metadata["Description"])


def pinned(requirements: Path) -> dict[str, str]:
    """The versions that a file of requirements names."""
    return dict(re.findall(r"^([\w-]+)==(\S+)$", requirements.read_text(encoding="utf-8"), re.MULTILINE))


def test_what_is_declared_is_what_is_tested(repository: Path) -> None:
    """The least versions that are tested are the lower bounds; the table in the README names both ends."""
    manifest = (repository / "python/pyproject.toml").read_text(encoding="utf-8")
    declared = dict(re.findall(r'"(numpy|torch|transformers)(>=[^"]+)"', manifest))
    assert declared.keys() == {"numpy", "torch", "transformers"}
    least, middle, newest = (
        pinned(repository / f"python/requirements-{name}.txt") for name in ("least", "middle", "newest")
    )
    readme = (repository / "python/README.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| (\w+) \| (.*) \|$", readme.split("## Ten lines")[0], re.MULTILINE))
    for name, bounds in declared.items():
        bound = bounds.removeprefix(">=").split(",")[0]
        assert least[name] == bound + ".0" * (2 - bound.count(".")), name
        assert table[name] == f"`{bounds}` | {least[name]} | {newest[name]}", name
    for name in ("llguidance", "xgrammar"):
        assert table[name] == f"| {middle[name]} | {newest[name]}", name
    assert f"transformers {middle['transformers'].removesuffix('.0')} on torch" in readme


def test_it_is_imported_without_torch() -> None:
    """numpy is all that the package needs; what stands on torch is read on first use."""
    import subprocess
    import sys

    code = "import sys, moldrift; print({'torch', 'transformers', 'pandas'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_wheels_are_checked(tmp_path: Path) -> None:
    """The check of wheels finds what it is there for."""
    import zipfile

    import check_wheel as wheel  # beside this file

    path = tmp_path / "moldrift-0.1.0-cp310-abi3-manylinux_2_17_x86_64.whl"
    files = dict.fromkeys(wheel.FILES, b"")

    def written(**more: bytes) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {**files, **more}.items():
                archive.writestr(name, data)
        return path

    wheel.check(written(**{"moldrift/_lib.abi3.so": b"GLIBC_2.17 GLIBC_2.2.5"}))
    with pytest.raises(AssertionError, match=r"needs glibc \(2, 28\), promises \(2, 17\)"):
        wheel.check(written(**{"moldrift/_lib.abi3.so": b"GLIBC_2.28"}))
    with pytest.raises(AssertionError, match="not for every Python"):
        wheel.check(written(**{"moldrift/_lib.cpython-311.so": b""}))
    with pytest.raises(AssertionError, match="holds"):
        wheel.check(written(**{"moldrift/_lib.abi3.so": b"", "moldrift/tests/a.py": b""}))
    files.pop("moldrift/py.typed")
    with pytest.raises(AssertionError, match="lacks"):
        wheel.check(written(**{"moldrift/_lib.abi3.so": b""}))
