"""Tokenizers as users have them, as the bytes that drift reads.

drift reads a ``tokenizer.json`` of Hugging Face. A path (or the name of a tokenizer that comes with drift,
such as ``qwen-like``) is read by drift itself. What lives in memory is written as JSON first: a
``tokenizers.Tokenizer`` by its ``to_str``, a tokenizer of transformers by the one that it stands on. Neither
library is imported here.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Protocol, TypeAlias

from moldrift.errors import TokenizerRefused

__all__ = ["TokenizerJson", "TokenizerLike", "tokenizer_json", "tokenizer_source"]


class TokenizerJson(NamedTuple):
    """A tokenizer that lives in memory."""

    #: How it is called in reports and messages.
    name: str
    #: Its ``tokenizer.json``.
    json: bytes
    #: What its ``tokenizer_config.json`` would say of special tokens, as JSON; None where nothing is known.
    config: str | None


class _Serializable(Protocol):
    """A ``tokenizers.Tokenizer``."""

    def to_str(self, pretty: bool = False) -> str: ...


class _OnBackend(Protocol):
    """A fast tokenizer of transformers, 4 or 5."""

    @property
    def backend_tokenizer(self) -> Any: ...


#: A path to a ``tokenizer.json`` or a model folder, the name of a tokenizer that comes with drift, a
#: ``tokenizers.Tokenizer``, or a fast tokenizer of transformers.
TokenizerLike: TypeAlias = "str | os.PathLike[str] | _Serializable | _OnBackend"


def tokenizer_json(tokenizer: _Serializable | _OnBackend) -> TokenizerJson:
    """The JSON of a tokenizer in memory, its name, and its special tokens.

    Args:
        tokenizer: a ``tokenizers.Tokenizer``, or a fast tokenizer of transformers.

    Returns:
        Name, bytes of the JSON, and ``{"bos_token": …, "eos_token": …}`` as JSON where it is one of
        transformers.

    Raises:
        TokenizerRefused: if it is neither (a slow tokenizer of transformers has no JSON).

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
    """A path as a string, anything else by `tokenizer_json`.

    >>> tokenizer_source("qwen-like")
    'qwen-like'
    """
    if isinstance(tokenizer, str | os.PathLike):
        return os.fspath(tokenizer)
    return tokenizer_json(tokenizer)


def _name(tokenizer: object) -> str:
    """The last part of where transformers read it from, else what it is."""
    path = getattr(tokenizer, "name_or_path", None)
    name = os.path.basename(os.path.normpath(path)) if isinstance(path, str) and path else ""
    return name or type(tokenizer).__name__


def _config(tokenizer: object) -> str | None:
    """The special tokens that transformers knows."""
    tokens = {name: getattr(tokenizer, name, None) for name in ("bos_token", "eos_token")}
    known = {name: str(token) for name, token in tokens.items() if token is not None}
    return json.dumps(known) if known else None
