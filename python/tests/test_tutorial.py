"""The tutorial runs from beginning to end, as a page and as a notebook."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from notebook import NOTEBOOK, PAGE, REPOSITORY, notebook, parts, programs, written

#: Printed between the blocks, so that their outputs can be told apart.
BETWEEN = "== the next block =="


def test_the_notebook_is_that_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert NOTEBOOK.read_text(encoding="utf-8") == written(page), "run python python/tests/notebook.py"


@pytest.mark.program
def test_the_tutorial_prints_what_it_shows() -> None:
    for module in ("moldrift", "pandas", "torch", "transformers"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    blocks = programs(PAGE.read_text(encoding="utf-8"))
    ran = subprocess.run(
        [sys.executable, "-c", f"\nprint({BETWEEN!r})\n".join(code for code, _ in blocks)],
        cwd=REPOSITORY,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    printed = [one.strip("\n") for one in ran.stdout.split(BETWEEN)]
    assert len(printed) == len(blocks)
    has_model = False
    for (code, shown), output in zip(blocks, printed, strict=True):
        has_model |= "import torch" in code
        if has_model:
            # What a model draws depends on the release of torch.
            assert len(output.splitlines()) == len(shown.splitlines()), output
        else:
            assert output == shown
    [verdicts] = [output for output in printed if "plain" in output and "passed" in output]
    samples, passed = verdicts.splitlines()[2].split()[1:3]
    assert samples == passed == "30", verdicts


def test_what_a_notebook_is() -> None:
    page = "# A\n\nText\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nEnd\n"
    assert parts(page) == [("prose", "# A\n\nText"), ("python", "print(1)"), ("text", "1"), ("prose", "End")]
    assert programs(page) == [("print(1)", "1")]
    first, code, last = notebook(page)["cells"]
    assert (first["cell_type"], last["source"]) == ("markdown", ["End"])
    assert code["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}]
