"""The notebook of a page: its prose and code as cells, with what they print.

python python/tests/notebook.py        # writes docs/tutorial.ipynb from docs/tutorial.md
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE, NOTEBOOK = REPOSITORY / "docs/tutorial.md", REPOSITORY / "docs/tutorial.ipynb"


def parts(page: str) -> list[tuple[str, str]]:
    """The page in order: ``prose``, and the ``python`` and ``text`` of fences."""
    found: list[tuple[str, str]] = []
    lines, language = page.splitlines(), "prose"
    held: list[str] = []
    for line in lines:
        if line.startswith("```"):
            found.append((language, "\n".join(held).strip("\n")))
            held, language = [], line[3:] if language == "prose" else "prose"
        else:
            held.append(line)
    found.append((language, "\n".join(held).strip("\n")))
    return [(kind, text) for kind, text in found if text]


def programs(page: str) -> list[tuple[str, str]]:
    """Each block of code with the output that the page shows behind it."""
    found = parts(page)
    return [(code, found[at + 1][1]) for at, (kind, code) in enumerate(found) if kind == "python"]


def notebook(page: str) -> dict[str, Any]:
    """The notebook, in format 4.5."""
    cells: list[dict[str, Any]] = []
    for kind, text in parts(page):
        source = text.splitlines(keepends=True)
        if kind == "text":
            cells[-1]["outputs"] = [
                {"name": "stdout", "output_type": "stream", "text": [*source[:-1], source[-1] + "\n"]}
            ]
            continue
        cell: dict[str, Any] = {"id": f"cell-{len(cells)}", "metadata": {}, "source": source}
        if kind == "python":
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            cell |= {"cell_type": "markdown"}
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def written(page: str) -> str:
    """The file of the notebook."""
    return json.dumps(notebook(page), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
