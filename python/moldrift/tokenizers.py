"""Converts tokenizers of Python libraries to the JSON that drift reads.

drift reads a ``tokenizer.json`` of Hugging Face. It reads a path, or the name of a built-in tokenizer such as
``qwen-like``, itself. A tokenizer in memory is written as JSON first: a ``tokenizers.Tokenizer`` by its ``to_str``, a
tokenizer of transformers by its backend tokenizer. Neither library is imported here.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Protocol, TypeAlias

from moldrift.errors import TokenizerRefused

__all__ = ["TokenizerJson", "TokenizerLike", "tokenizer_json", "tokenizer_source"]


class TokenizerJson(NamedTuple):
    """A tokenizer in memory."""

    #: The name in reports and messages.
    name: str
    #: The content of its ``tokenizer.json``.
    json: bytes
    #: The special tokens as JSON, as in a ``tokenizer_config.json``; None if none are known.
    config: str | None


class _Serializable(Protocol):
    """A ``tokenizers.Tokenizer``."""

    def to_str(self, pretty: bool = False) -> str: ...


class _OnBackend(Protocol):
    """A fast tokenizer of transformers, 4 or 5."""

    @property
    def backend_tokenizer(self) -> Any: ...


#: A path to a ``tokenizer.json`` or a model folder, the name of a built-in tokenizer, a ``tokenizers.Tokenizer``, or a
#: fast tokenizer of transformers.
TokenizerLike: TypeAlias = "str | os.PathLike[str] | _Serializable | _OnBackend"


def tokenizer_json(tokenizer: _Serializable | _OnBackend) -> TokenizerJson:
    """The JSON of a tokenizer in memory, its name, and its special tokens.

    Args:
        tokenizer: a ``tokenizers.Tokenizer``, or a fast tokenizer of transformers.

    Returns:
        Name, bytes of the JSON, and, for a tokenizer of transformers, ``{"bos_token": …, "eos_token": …}`` as
        JSON.

    Raises:
        TokenizerRefused: if the object is neither (a slow tokenizer of transformers has no JSON).

    >>> class Stored:
    ...     def to_str(self, pretty=False):
    ...         return '{"version": "1.0"}'
    >>> tokenizer_json(Stored())
    TokenizerJson(name='Stored', json=b'{"version": "1.0"}', config=None)
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    to_str = getattr(backend, "to_str", None)
    if not callable(to_str):
        raise TokenizerRefused(
            f"{type(tokenizer).__name__}: has no tokenizer.json; give a path, a tokenizers.Tokenizer, "
            "or a fast tokenizer of transformers"
        )
    text: str = to_str()
    return TokenizerJson(_name(tokenizer), text.encode(), _config(tokenizer))


def tokenizer_source(tokenizer: TokenizerLike) -> str | TokenizerJson:
    """A path as a string; for any other tokenizer the result of `tokenizer_json`.

    >>> tokenizer_source("qwen-like")
    'qwen-like'
    """
    if isinstance(tokenizer, str | os.PathLike):
        return os.fspath(tokenizer)
    return tokenizer_json(tokenizer)


def _name(tokenizer: object) -> str:
    """The last part of the path that transformers read the tokenizer from, else the name of its class."""
    path = getattr(tokenizer, "name_or_path", None)
    name = os.path.basename(os.path.normpath(path)) if isinstance(path, str) and path else ""
    return name or type(tokenizer).__name__


def _config(tokenizer: object) -> str | None:
    """The special tokens that transformers knows, as JSON."""
    tokens = {name: getattr(tokenizer, name, None) for name in ("bos_token", "eos_token")}
    known = {name: str(token) for name, token in tokens.items() if token is not None}
    return json.dumps(known) if known else None
