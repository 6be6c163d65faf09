"""Builds the site: the pages as a book with search, the Python reference in it, and the reference of the Rust crates beside it.

    python docs/site.py                 # into target/site; needs mdbook and cargo
    python docs/site.py --pages-only    # the pages of the book in target/site-pages, and the check of their links

The book's pages are copies: links to files outside `docs` become links to copies of pages, or to the repository if it has an
address. Each link between pages is checked, with its section; a broken one ends the build. The Python reference is read from the
sources and stubs, without importing the package.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "python" / "moldrift"
PAGES = ROOT / "target" / "site-pages"
SITE = ROOT / "target" / "site"

#: The first page of the site, and its name.
README = ROOT / "README.md"
README_PAGE = "drift.md"

#: The name of the page of each reference.
PYTHON_PAGE = "python-reference.md"
RUST_PAGE = "rust-reference.md"

#: A link of Markdown: the text, then the address.
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")

CRATES = ("drift", "drift_core", "drift_data", "drift_tune", "drift_engine")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages-only", action="store_true", help="neither mdbook nor cargo is run")
    parser.add_argument("--repository", default="", help="the address of the repository's files, for links to what is no page")
    arguments = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    outside = copy_pages(arguments.repository)
    (PAGES / PYTHON_PAGE).write_text(python_reference(), encoding="utf-8")
    (PAGES / RUST_PAGE).write_text(rust_reference(), encoding="utf-8")
    write_summary(outside)
    broken = broken_links()
    for line in broken:
        print(line, file=sys.stderr)
    if broken or arguments.pages_only:
        return 1 if broken else 0
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run(["mdbook", "build", str(PAGES), "--dest-dir", str(SITE)], check=True)
    crates = [word for crate in CRATES for word in ("--package", crate.replace("_", "-"))]
    subprocess.run(["cargo", "doc", "--locked", "--release", "--no-deps", *crates], cwd=ROOT, check=True)
    shutil.copytree(ROOT / "target" / "doc", SITE / "rust")
    print(f"wrote {SITE / 'index.html'}")
    return 0


def copy_pages(repository: str) -> dict[Path, str]:
    """Copies the pages of `docs`, and those outside that they link to. Returns the latter with their names in the book."""
    outside = {README: README_PAGE}
    for path in sorted(DOCS.rglob("*")):
        if path.is_dir() or path.suffix == ".py":
            continue
        place = PAGES / path.relative_to(DOCS)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            place.write_text(for_the_book(path, place, outside, repository), encoding="utf-8")
        else:
            shutil.copyfile(path, place)
    # Pages outside `docs` are read by name; what they link to outside is not.
    for path, name in list(outside.items()):
        place = PAGES / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(for_the_book(path, place, outside, repository, deep=False), encoding="utf-8")
    return outside


def for_the_book(path: Path, place: Path, outside: dict[Path, str], repository: str, deep: bool = True) -> str:
    """The text of a page, with its links as they are in the book."""

    def link(match: re.Match[str]) -> str:
        text, address = match.groups()
        target, hash_, section = address.partition("#")
        if "://" in address or not target or address.startswith("mailto:"):
            return match[0]
        found = (path.parent / target).resolve()
        if found.is_relative_to(DOCS) and found.exists() and found.suffix != ".py":
            inside = PAGES / found.relative_to(DOCS)
        elif found.suffix == ".md" and (deep or found in outside):
            inside = PAGES / outside.setdefault(found, "outside/" + "-".join(found.relative_to(ROOT).parts).lower())
        elif repository and found.exists():
            return f"{text}({repository.rstrip('/')}/{found.relative_to(ROOT).as_posix()}{hash_}{section})"
        else:
            # No page of the book and no address: its name stays.
            return text[1:-1] if not text.startswith("!") and found.exists() else match[0]
        return f"{text}({relative(inside, place.parent)}{hash_}{section})"

    return "\n".join(LINK.sub(link, line) for line in path.read_text(encoding="utf-8").split("\n"))


def relative(path: Path, folder: Path) -> str:
    """A path as seen from a folder."""
    up = 0
    while not path.is_relative_to(folder):
        folder, up = folder.parent, up + 1
    return "../" * up + path.relative_to(folder).as_posix()


def write_summary(outside: dict[Path, str]) -> None:
    """Adds the README at its begin, and the references and the pages from outside at its end, to the table of contents."""
    lines = ["", "# References", "", f"- [Python]({PYTHON_PAGE})", f"- [Rust]({RUST_PAGE})", "", "# Of the repository", ""]
    for path, name in sorted(outside.items()):
        if path != README:
            lines.append(f"- [{path.relative_to(ROOT).as_posix()}]({name})")
    summary = PAGES / "SUMMARY.md"
    title, pages = summary.read_text(encoding="utf-8").split("\n\n", 1)
    summary.write_text(f"{title}\n\n[drift]({README_PAGE})\n{pages}" + "\n".join(lines) + "\n", encoding="utf-8")


def rust_reference() -> str:
    """The page that leads to cargo's documentation."""
    said = {
        "drift": "the program's library, which has all others under one name",
        "drift_core": "encodings, molecules, tokens and masks",
        "drift_data": "files, statistics and judging",
        "drift_tune": "placeholders, tokenizer extensions and encodings for a tokenizer",
        "drift_engine": "models, training, decoding and evaluations",
    }
    lines = [f"- <a href=\"rust/{crate}/index.html\">`{crate}`</a>: {said[crate]}" for crate in CRATES]
    return "# Rust reference\n\nThe documentation of the crates, as `cargo doc` writes it.\n\n" + "\n".join(lines) + "\n"


def python_reference() -> str:
    """The page of the package: what `moldrift` exports, then its modules."""
    package = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    out = ["# Python reference", "", ast.get_docstring(package) or "", "", "From the docstrings of `moldrift`.", ""]
    for path in [*sorted(PACKAGE.glob("*.py")), PACKAGE / "_lib.pyi"]:
        module = ast.parse(path.read_text(encoding="utf-8"))
        items = [node for node in module.body if is_public(node)]
        if path.stem in ("__init__", "__main__") or not items:
            continue
        out += [f"## moldrift.{path.stem}", "", ast.get_docstring(module) or "", ""]
        for node in items:
            out += described(node, path.suffix == ".pyi")
    return "\n".join(out)


def is_public(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")


def described(node: ast.stmt, is_stub: bool) -> list[str]:
    """A class or function with its signature and docstring; the methods of a class after it."""
    assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    out = [f"### {node.name}", "", *code(node), *indented(node)]
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            is_method = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_method and (is_public(inner) or inner.name in ("__init__", "__new__", "__call__")):
                # A method without words is one that the class describes.
                if ast.get_docstring(inner) or inner.name.startswith("__") or is_stub:
                    out += [*code(inner), *indented(inner)]
    return out


def code(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        line = f"class {node.name}({bases})" if bases else f"class {node.name}"
    else:
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        line = f"def {node.name}({ast.unparse(node.args)}){returns}"
    return ["```python", line, "```", ""]


def indented(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    text = ast.get_docstring(node)
    return [*(line for part in text.split("\n\n") for line in [*paragraph(part), ""])] if text else []


def paragraph(part: str) -> list[str]:
    """A paragraph of a docstring: sessions as code, arguments as a list."""
    lines = part.split("\n")
    if lines[0].startswith(">>>"):
        return ["```python", *lines, "```"]
    # An angle is no tag.
    lines = [re.sub(r"(?<!`)<", "\\<", line) for line in lines]
    if re.fullmatch(r"(Args|Arguments|Returns|Raises|Yields|Attributes):", lines[0]):
        named = [re.sub(r"^    (\*{0,2}[\w, |.*]+): ", r"- `\1`: ", line) for line in lines[1:]]
        return [f"**{lines[0][:-1]}**", "", *(line.strip() if line.startswith("- ") else "  " + line.strip() for line in named)]
    return lines


def broken_links() -> list[str]:
    """The links of the book that lead nowhere: no file, or no such section."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(PAGES.rglob("*.md"))}
    sections = {path: anchors(text) for path, text in texts.items()}
    out = []
    for path, text in texts.items():
        for address in links(text):
            target, _, section = address.partition("#")
            if "://" in address or address.startswith("mailto:"):
                continue
            found = (path.parent / target).resolve() if target else path
            name = path.relative_to(PAGES)
            if not found.exists():
                out.append(f"{name}: {address} leads nowhere")
            elif section and found.suffix == ".md" and section not in sections[found]:
                out.append(f"{name}: {address} has no such section")
    listed = set(links(texts[PAGES / "SUMMARY.md"]))
    for path in texts:
        name = path.relative_to(PAGES).as_posix()
        if name != "SUMMARY.md" and name not in listed:
            out.append(f"{name} is not in SUMMARY.md")
    return out


def links(text: str) -> list[str]:
    """The addresses of links outside code."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    prose = "\n".join(line for line in prose.split("\n") if not line.startswith("    "))
    return [match[2] for match in LINK.finditer(re.sub(r"`[^`\n]*`", "``", prose))]


def anchors(text: str) -> set[str]:
    """The names of the sections of a page, as mdbook and GitHub make them."""
    prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    out: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose, flags=re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = 1
        own = name
        while own in out:
            own, count = f"{name}-{count}", count + 1
        out.add(own)
    return out


if __name__ == "__main__":
    sys.exit(main())
