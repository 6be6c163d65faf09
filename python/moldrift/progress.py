"""Progress of long work, on a terminal or in your own hands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

#: Called at most ten times a second with what is being done, how much of it is done, how much there is (None
#: where that is not known), and in which unit: ``"items"`` or ``"bytes"``. What it raises ends the work.
ProgressCallback: TypeAlias = Callable[[str, int, "int | None", str], object]


class Bar:
    """A line on a terminal that says how far the work is; it waits a second, and goes when the work is over.

    >>> import io
    >>> stream = io.StringIO()
    >>> with Bar(stream, patience=0) as bar:
    ...     bar("replaying", 250, 1000, "items")
    >>> stream.getvalue().strip("\\r\\x1b[2K")
    'replaying ######                   25 %'
    """

    WIDTH = 24

    def __init__(self, stream: TextIO, patience: float = 1.0) -> None:
        self._stream = stream
        self._begins = time.monotonic() + patience
        self._shown = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def __call__(self, phase: str, done: int, total: int | None, unit: str) -> None:
        """Draws the line anew."""
        if time.monotonic() < self._begins:
            return
        self._shown = True
        self._stream.write(f"\r\x1b[2K{phase} {self._figure(done, total, unit)}")
        self._stream.flush()

    def _figure(self, done: int, total: int | None, unit: str) -> str:
        if not total:
            return f"{done:,} {unit}"
        share = min(done / total, 1.0)
        return f"{'#' * int(share * self.WIDTH):{self.WIDTH}} {share:.0%}".replace("%", " %")


def shown_on_terminal() -> Bar | None:
    """A bar on stderr, where that is a terminal."""
    return Bar(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None
