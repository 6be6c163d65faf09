"""Arguments of functions, in the form that the extension module takes. What cannot be used is refused in one line."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from moldrift.errors import DriftError, ForbiddenToken, InvalidSmiles

__all__ = [
    "is_list_of_prompts",
    "is_text",
    "json_text",
    "named_fields",
    "number",
    "numbers",
    "prefix_of",
    "smiles_text",
    "token_ids",
    "truth",
    "whole_number",
    "whole_numbers",
]

_SURROGATE = re.compile("[\ud800-\udfff]")

#: The largest id that the extension module takes.
_LARGEST_ID = 2**32 - 1


def json_text(place: str, value: Any) -> str:
    """JSON of texts, numbers, lists and dicts; numbers and arrays of NumPy and torch count as such.

    >>> json_text("prompt", {"species": np.array(["Na", "Cl"]), "times": np.int64(2)})
    '{"species": ["Na", "Cl"], "times": 2}'

    Raises:
        DriftError: if there is anything else in the value.
    """
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise DriftError(
            f"{place}: is no JSON: {error}; give texts, finite numbers, lists and dicts"
        ) from error


def _plain(value: Any) -> Any:
    """A number or array as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def smiles_text(smiles: Any) -> str:
    """A SMILES, which is a text.

    Raises:
        InvalidSmiles: if it is none.
    """
    if not is_text(smiles):
        raise InvalidSmiles(f"{smiles!r}: is no text; give a SMILES")
    return smiles


def is_text(value: Any) -> bool:
    """Whether a value is a text without half of a surrogate pair, which no file could hold."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value))


def token_ids(place: str, ids: Any) -> npt.NDArray[np.int64]:
    """A row of token ids: a list, an array, or a tensor on any device.

    Raises:
        DriftError: if it is no row of integers.
    """
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    try:
        found = np.asarray(ids)
    except ValueError:  # rows of different lengths
        found = np.empty((0, 0))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DriftError(f"{place} is no row of token ids; give a list of integers")
    return np.ascontiguousarray(found, dtype=np.int64)


def prefix_of(ids: Any, place: str = "the prefix") -> list[int]:
    """The ids of a text or of its beginning, as a list.

    Raises:
        DriftError: if it is no row of integers.
        ForbiddenToken: if one of them can be no id.
    """
    found: list[int] = token_ids(place, ids).tolist()
    for at, one in enumerate(found):
        if not 0 <= one <= _LARGEST_ID:
            raise ForbiddenToken(
                f"token {at} of {place} is {one}, which is no id; give the ids behind the prompt"
            )
    return found


def whole_numbers(place: str, given: Any, needed: str) -> list[int]:
    """One whole number or several, as a list.

    Raises:
        DriftError: if one is none.
    """
    several = _several(given)
    try:
        if any(isinstance(one, bool) for one in several):
            raise TypeError("a bool counts nothing")
        return [operator.index(one) for one in several]
    except TypeError:
        raise DriftError(f"{place}: {given!r:.60} is no whole number; give {needed}") from None


def numbers(place: str, given: Any, needed: str) -> list[float]:
    """One number or several, as a list.

    Raises:
        DriftError: if one is none.
    """
    try:
        return [float(one) for one in _several(given)]
    except (TypeError, ValueError):
        raise DriftError(f"{place}: {given!r:.60} is no number; give {needed}") from None


def number(place: str, given: Any, needed: str) -> float:
    """One number.

    Raises:
        DriftError: if it is none, or several.
    """
    several = [] if isinstance(given, str | bytes) else numbers(place, given, needed)
    if len(several) != 1:
        raise DriftError(f"{place}: {given!r:.60} is no number; give {needed}")
    return several[0]


def whole_number(place: str, given: Any, bounds: range, problem: str, needed: str) -> int:
    """One whole number in a range; ``problem`` says what another one is not.

    Raises:
        DriftError: if it is none, or several.
    """
    several = whole_numbers(place, given, needed)
    if len(several) != 1 or several[0] not in bounds:
        raise DriftError(f"{place}: {given!r:.60} {problem}; give {needed}")
    return several[0]


def truth(place: str, given: Any) -> bool:
    """One of the two truth values; NumPy's count as such.

    Raises:
        DriftError: if it is anything else.
    """
    if not isinstance(given, bool | np.bool_):
        raise DriftError(f"{place}: {given!r:.60} is neither True nor False; give one of them")
    return bool(given)


def _several(given: Any) -> list[Any]:
    """A list with one value or several; those of NumPy and torch as Python's own."""
    plain = given.tolist() if hasattr(given, "tolist") else given
    return list(plain) if isinstance(plain, Iterable) and not isinstance(plain, str | bytes) else [plain]


@contextmanager
def named_fields() -> Iterator[None]:
    """Names the argument of which the extension module says that it has another type.

    Raises:
        DriftError: in place of its TypeError.
    """
    try:
        yield
    except TypeError as error:
        field, cause = "", error
        while found := re.match(r"failed to extract field \w+\.(\w+)", str(cause)):
            field = found[1]
            if cause.__cause__ is None:
                break
            cause = cause.__cause__
        if not field:
            raise
        raise DriftError(f"{field}: {cause}; help() of the function says what it takes") from error


def is_list_of_prompts(given: Any) -> bool:
    """Whether an argument can be a list with one entry for each prompt: not one text, one record or nothing."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
