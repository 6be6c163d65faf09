"""Texts in memory as the records that `moldrift.audit` reads: a list of texts, or lists of texts by the label of their row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from moldrift.arguments import smiles_text
from moldrift.errors import DriftError

__all__ = ["Text", "is_rows", "plain_records", "records", "records_of_rows"]

#: A generated text, or a record that holds one.
Text: TypeAlias = "str | Mapping[str, Any]"

#: Fields of a record that hold lists of texts. A mapping with one of them is a record, not rows.
_LISTS = frozenset({"all_generations", "choices", "outputs"})


def plain_records(texts: Any) -> Any:
    """The rows of a DataFrame of pandas as records, with None for what is missing; anything else as it is."""
    if getattr(texts, "ndim", 0) == 2 and hasattr(texts, "to_dict") and hasattr(texts, "notna"):
        return texts.astype(object).where(texts.notna(), None).to_dict("records")
    return texts


def is_rows(given: Any) -> bool:
    """Whether a mapping holds lists of texts by label. The values of a record are not all lists."""
    return (
        isinstance(given, Mapping)
        and bool(given)
        and not _LISTS & given.keys()
        and all(_is_listed(texts) for texts in given.values())
    )


def records_of_rows(
    rows: Mapping[str, Iterable[Text]], smiles: Iterable[str] | None, field: str
) -> list[dict[str, Any]]:
    """The records of rows; ``field`` of each holds the label of its row.

    Raises:
        DriftError: if a row has no text, or its texts do not fit the molecules.
    """
    if field == "file":
        raise DriftError(
            "row_field: `file` makes files rows, and lists of texts have labels; leave row_field out"
        )
    molecules = _molecules(smiles)
    listed = []
    for label, texts in rows.items():
        if not isinstance(label, str):
            raise DriftError(f"texts: the label of a row is {label!r}; give a string")
        listed += [record | {field: label} for record in records(texts, molecules, f"row `{label}`")]
    return listed


def records(texts: Iterable[Text], smiles: Iterable[str] | None, name: str = "texts") -> list[dict[str, Any]]:
    """The records of one list. Text i of n is of molecule ``i // (n / len(smiles))``, as ``generate`` returns them.

    Raises:
        DriftError: if there is no text, or the texts do not fit the molecules.
    """
    given = list(plain_records(texts))
    if not given:
        raise DriftError(f"{name}: has no text; give at least one, or leave the row out")
    wrong = next((at for at, text in enumerate(given) if not isinstance(text, str | Mapping)), None)
    if wrong is not None:
        raise DriftError(f"{name}: text {wrong} is {type(given[wrong]).__name__}; give strings or records")
    if all(isinstance(text, Mapping) for text in given):
        if smiles is not None:
            raise DriftError(
                f"{name}: holds records, which have their own SMILES; leave smiles out, or give strings"
            )
        return [dict(record) for record in given]
    if any(isinstance(text, Mapping) for text in given):
        raise DriftError(f"{name}: mixes strings and records; give one or the other")
    if smiles is None:
        raise DriftError(f"{name}: holds strings; give the molecules as smiles")
    return list(_of_strings(given, _molecules(smiles) or [], name))


def _of_strings(texts: Sequence[str], smiles: Sequence[str], name: str) -> Iterator[dict[str, Any]]:
    each, rest = divmod(len(texts), len(smiles)) if smiles else (0, 1)
    if rest or not each:
        raise DriftError(
            f"{name}: has {len(texts)} texts for {len(smiles)} SMILES; give one for each, or the same number for each"
        )
    # A molecule may come again.
    seen: dict[str, int] = {}
    for at, text in enumerate(texts):
        one = smiles[at // each]
        seen[one] = seen.get(one, -1) + 1
        yield {"smiles": one, "generation": seen[one], "text": text}


def _molecules(smiles: Iterable[str] | None) -> list[str] | None:
    return (
        None
        if smiles is None
        else [smiles_text(one) for one in ([smiles] if isinstance(smiles, str) else smiles)]
    )


def _is_listed(value: Any) -> bool:
    """Whether a value is a collection of things, not a thing."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
