"""Logit processors without drift for models that write 3D molecules as text."""

from moldrift._lib import VERSION as __version__
from moldrift.errors import DriftError, ForbiddenToken, InvalidSmiles, TokenizerRefused

__all__ = ["DriftError", "ForbiddenToken", "InvalidSmiles", "TokenizerRefused", "__version__"]
