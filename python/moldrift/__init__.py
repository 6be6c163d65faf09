"""Logit processors without drift for models that write 3D molecules as text."""

from moldrift._lib import VERSION as __version__

__all__ = ["__version__"]
