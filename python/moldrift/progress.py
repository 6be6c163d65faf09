"""Progress of long work, on a terminal or by your own function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO, TypeAlias

#: A function that is called at most ten times a second with the name of the phase, the amount done, the total amount
#: (None if unknown), and the unit: ``"items"`` or ``"bytes"``. An exception from it ends the work.
ProgressCallback: TypeAlias = Callable[[str, int, "int | None", str], object]


class Bar:
    """A progress line on a terminal. It appears after a second, and disappears when the work is finished.

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
        """Redraws the line."""
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
    """A bar on stderr, if stderr is a terminal."""
    return Bar(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None
