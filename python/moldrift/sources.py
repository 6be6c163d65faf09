"""Reads tokenizers from a path, a ``tokenizers.Tokenizer`` or a transformers tokenizer, and finds the token that ends
a text."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import moldrift._lib as _lib
from moldrift.arguments import json_text, whole_numbers
from moldrift.errors import DriftError, TokenizerRefused
from moldrift.tokenizers import tokenizer_json

#: The name of an encoding, the path of its file, or the content of such a file.
EncodingLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]


def encoding_name(encoding: EncodingLike) -> str:
    """An encoding in the form that drift reads: its name, its path, or JSON."""
    if isinstance(encoding, Mapping):
        return json_text("encoding", dict(encoding))
    if not isinstance(encoding, str | os.PathLike):
        raise DriftError(f"encoding: {encoding!r} is none; give a name, a path or the content of a file")
    return os.fspath(encoding)


@dataclass(frozen=True)
class TokenizerSource:
    """A tokenizer with the tokens that end and begin texts.

    Attributes:
        tokenizer: the tokenizer as drift reads it.
        eos: the id that ends a text.
        others: the ids of further ends of text, of the beginning of text and of padding.
        context: the context length of the model beside the tokenizer; None if unknown.
        encoding: how coordinates are written, from the files that drift wrote beside the tokenizer; None without
            such files.
        folder: the folder that the tokenizer was read from, or loaded from by transformers; None if unknown.
    """

    tokenizer: _lib.Tokenizer
    eos: int
    others: tuple[int, ...]
    context: int | None = None
    encoding: str | None = None
    folder: Path | None = None

    @property
    def ends(self) -> tuple[int, ...]:
        """All ids that may follow a finished text."""
        return (self.eos, *self.others)

    def encoding_or_fixed(self) -> str:
        """How coordinates are written; ``fixed`` if no file says it, with a warning for a model."""
        if self.encoding is None and self.folder is not None and (self.folder / "config.json").is_file():
            warnings.warn(
                f"{self.folder}: no file says how the model writes numbers, so fixed is assumed; give dialect= or encoding=",
                stacklevel=4,
            )
        return self.encoding or "fixed"

    def check_molecule(self, ids: Sequence[int], smiles: str) -> None:
        """Refuses the ids of a prompt, padded or not, that asks for another molecule. Prompts without ``[SMILES]`` are taken.

        Raises:
            DriftError: if the last SMILES between the tags of the prompt is another molecule than ``smiles``.
        """
        known = [one for one in ids if 0 <= one < self.tokenizer.size]
        _, tag, last = self.tokenizer.answer_text(known).rpartition("[SMILES]")
        asked = last.partition("[/SMILES]")[0].strip()
        if tag and asked not in ("", smiles) and _lib.are_different(asked, smiles):
            raise DriftError(
                f"prompt: asks for {asked:.80}, and the processor was given {smiles:.80}; give the molecules in the order of "
                "the prompts"
            )

    def keep_beside(self, folder: str | os.PathLike[str]) -> None:
        """Copies the files that say how the model writes numbers into the folder of a model that was trained on."""
        for name in ("recipe.json", "extension.json"):
            if (
                self.folder is not None
                and (self.folder / name).is_file()
                and not (Path(folder) / name).exists()
            ):
                shutil.copyfile(self.folder / name, Path(folder) / name)


def read(tokenizer: Any, eos_token_id: int | list[int] | None = None) -> TokenizerSource:
    """Reads a tokenizer and finds the token that ends a text.

    Args:
        tokenizer: a ``tokenizer.json`` (also ``.gz``), a model folder, the name of a model in the cache
            of Hugging Face (``org/name``, ``org/name@revision``) or of a built-in tokenizer
            (``qwen-like``, ``llama-like``), a ``tokenizers.Tokenizer`` or a fast transformers
            tokenizer.
        eos_token_id: the id that ends a text; of a list the first id is written. By default it comes from
            ``generation_config.json``, else ``config.json`` (of several ids the tokenizer's own, else the first),
            else ``tokenizer_config.json`` or the tokenizer object; else it is a token like ``<|endoftext|>``. The
            files are those of the folder that an object was loaded from, by path or by name; an object whose end of
            text was changed since knows better.

    Raises:
        TokenizerRefused: if it is not a tokenizer, or no token is known to end a text.
    """
    if isinstance(tokenizer, TokenizerSource) and eos_token_id is None:
        return tokenizer
    if isinstance(tokenizer, (str, os.PathLike)):
        read_one, folder, config = _of_path(os.fspath(tokenizer))
        specials = _specials_of_config(read_one, config)
    else:
        read_one, folder = _of_object(tokenizer)
        specials = [
            getattr(tokenizer, name, None) for name in ("eos_token_id", "bos_token_id", "pad_token_id")
        ]
        config = None
        if _is_changed(read_one, folder, specials[0]) and eos_token_id is None:
            eos_token_id = specials[0]
    ends = _ids(eos_token_id)
    if eos_token_id is not None and not ends:
        raise DriftError("eos_token_id: names no token; give an id, or leave it out")
    if not ends:
        # The order of the ids says nothing: models learn the one that their tokenizer names.
        ends = sorted(_ends_of_folder(folder), key=lambda one: one != specials[0])
    if not ends and specials[0] is not None:
        ends = [specials[0]]
    if not ends:
        ends = _ids(read_one.likely_end(config))
    if not ends:
        raise TokenizerRefused(f"{read_one.name}: no file says which token ends a text; give eos_token_id")
    for end in ends:
        if not 0 <= end < read_one.size:
            raise TokenizerRefused(
                f"{read_one.name}: eos_token_id {end} is not a token of it; give one of its ids"
            )
    others = dict.fromkeys([*ends[1:], *(one for one in specials if one is not None)])
    others.pop(ends[0], None)
    encoding = None if folder is None else _lib.Tokenizer.encoding_beside(folder)
    return TokenizerSource(read_one, ends[0], tuple(others), _context_of_folder(folder), encoding, folder)


def _of_path(path: str) -> tuple[_lib.Tokenizer, Path | None, str | None]:
    """The tokenizer of a path, its folder, and the content of its ``tokenizer_config.json``."""
    path = os.fspath(_lib.Tokenizer.locate(path))
    tokenizer = _lib.Tokenizer.load(path)
    folder = Path(path) if os.path.isdir(path) else Path(path).parent if os.path.exists(path) else None
    return tokenizer, folder, _lib.Tokenizer.config_beside(path)


def _of_object(tokenizer: Any) -> tuple[_lib.Tokenizer, Path | None]:
    """The tokenizer of an object of ``tokenizers`` or transformers, and its model's folder."""
    name, text, _ = tokenizer_json(tokenizer)
    path = str(getattr(tokenizer, "name_or_path", ""))
    if path and not os.path.isdir(path):
        # The name of a model in the cache of Hugging Face.
        with contextlib.suppress(DriftError):
            path = os.fspath(_lib.Tokenizer.locate(path))
    return _lib.Tokenizer.from_json(name, text), Path(path) if os.path.isdir(path) else None


def _is_changed(tokenizer: _lib.Tokenizer, folder: Path | None, eos: int | None) -> bool:
    """Whether an object ends texts otherwise than the files that it was loaded from."""
    if folder is None or eos is None:
        return False
    stated = _specials_of_config(tokenizer, _lib.Tokenizer.config_beside(str(folder)))[0]
    if stated is None:
        ends = _ends_of_folder(folder)
        return bool(ends) and eos not in ends
    return stated != eos


def _json(folder: Path | None, name: str) -> dict[str, Any]:
    """The settings in a JSON file of a model folder; empty if there is no such file."""
    if folder is None or not (folder / name).is_file():
        return {}
    try:
        settings = json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise DriftError(f"{folder / name}: is not JSON: {error}; repair or remove it") from error
    return settings if isinstance(settings, dict) else {}


def _ids(value: Any) -> list[int]:
    """One id, a list of ids, or None, as a list."""
    needed = "the id of a token, such as tokenizer.eos_token_id, or a list of ids"
    return [] if value is None else whole_numbers("eos_token_id", value, needed)


def _ends_of_folder(folder: Path | None) -> list[int]:
    """The ids that a model folder names as ends of text."""
    for name in ("generation_config.json", "config.json"):
        if ends := _ids(_json(folder, name).get("eos_token_id")):
            return ends
    return []


def _context_of_folder(folder: Path | None) -> int | None:
    """The context length of a model."""
    most = _json(folder, "config.json").get("max_position_embeddings")
    return most if isinstance(most, int) else None


def _specials_of_config(tokenizer: _lib.Tokenizer, config: str | None) -> list[int | None]:
    """The ids of end, beginning and padding in a ``tokenizer_config.json``."""
    settings = json.loads(config) if config else {}

    def named(name: str) -> int | None:
        token = settings.get(name)
        token = token.get("content") if isinstance(token, dict) else token
        return tokenizer.id_of(token) if isinstance(token, str) else None

    return [named(name) for name in ("eos_token", "bos_token", "pad_token")]
