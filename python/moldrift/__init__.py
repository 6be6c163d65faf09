"""Logit processors without drift for models that write 3D molecules as text."""

from moldrift._lib import VERSION as __version__
from moldrift.errors import DriftError, ForbiddenToken, InvalidSmiles, TokenizerRefused
from moldrift.reports import Report, audit, encode, fit, inspect, mine, train_tokenizer

__all__ = [
    "DriftError",
    "ForbiddenToken",
    "InvalidSmiles",
    "Report",
    "TokenizerRefused",
    "__version__",
    "audit",
    "encode",
    "fit",
    "inspect",
    "mine",
    "train_tokenizer",
]
