"""The examples of the pages: blocks of code, fenced or indented, and what they are written in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

#: What a command of an indented block begins with.
PROGRAMS = (
    "$ ",
    "bash ",
    "cargo ",
    "cd ",
    "drift ",
    "for ",
    "mkdir ",
    "pip ",
    "printf ",
    "python ",
    "sbatch ",
    "vllm ",
)

#: What fences say of blocks that are run: by a shell, with its output shown or without, and by Python.
SHELL, CONSOLE, PYTHON = ("bash", "sh", "shell"), "console", "python"


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: relative to the repository.
        line: the number of its first line of code.
        language: what its fence says; of an indented block what it looks like.
        code: without indentation.
    """

    page: str
    line: int
    language: str
    code: str

    @property
    def name(self) -> str:
        """The page and how the block begins, which stays when lines above it change."""
        return f"{self.page}: {self.first[:60]}"

    @property
    def first(self) -> str:
        """The first line."""
        return self.code.split("\n", 1)[0]

    @property
    def is_shell(self) -> bool:
        """Whether it is typed into a shell."""
        return self.language in (*SHELL, CONSOLE)

    def steps(self) -> list[str]:
        """The commands, each whole: with lines that it goes on in, and loops up to their end."""
        lines = self.code.splitlines()
        if self.language == CONSOLE:
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        steps: list[str] = []
        is_open = False
        for line in lines:
            if is_open:
                steps[-1] += "\n" + line
            elif line.strip():
                steps.append(line)
            last = steps[-1] if steps else ""
            in_loop = last.startswith("for ") and not re.search(r"\bdone\b", last)
            is_open = last.endswith("\\") or in_loop
        return [without_comment(step) for step in steps]

    def shown(self) -> str:
        """What a console block shows behind its command."""
        return "\n".join(line for line in self.code.splitlines() if not line.startswith("$ "))


def without_comment(step: str) -> str:
    """A command without the comment behind it, which stands two spaces or more away."""
    return re.sub(r"\s{1,}# .*$", "", step).rstrip()


def pages() -> list[Path]:
    """The pages whose examples run."""
    return [
        REPOSITORY / "README.md",
        REPOSITORY / "python/README.md",
        *sorted((REPOSITORY / "docs").rglob("*.md")),
    ]


def blocks() -> list[Block]:
    """All blocks of all pages."""
    return [block for page in pages() for block in blocks_of(page)]


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, in their order."""
    name = page.relative_to(REPOSITORY).as_posix()
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = lines.index("```", at + 1)
            yield Block(name, at + 2, lines[at][3:].strip(), "\n".join(lines[at + 1 : end]))
            at = end + 1
        elif is_indented(lines[at]) and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (is_indented(lines[end]) or not lines[end].strip()):
                end += 1
            code = "\n".join(line[4:] for line in lines[at:end]).rstrip()
            yield Block(name, at + 1, looks_like(code), code)
            at = end
        else:
            at += 1


def is_indented(line: str) -> bool:
    """Whether a line belongs to an indented block."""
    return line.startswith("    ") and bool(line.strip())


def looks_like(code: str) -> str:
    """What an indented block is written in."""
    if code.startswith("$ "):
        return CONSOLE
    if code.startswith(PROGRAMS):
        return SHELL[1]
    return PYTHON if code.startswith(("def ", "import ", "from ")) else "text"
