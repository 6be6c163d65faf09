"""Logit processors without drift for models that write 3D molecules as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldrift._lib import VERSION as __version__
from moldrift.automaton import Automaton, GeometryAutomaton
from moldrift.errors import DriftError, ForbiddenToken, InvalidSmiles, TokenizerRefused
from moldrift.generations import read_generations, write_generations
from moldrift.grammars import export_grammar
from moldrift.judge import Judge, read_matrix
from moldrift.positions import PositionTemplates
from moldrift.reports import Report, audit, encode, fit, inspect, mine, train_tokenizer
from moldrift.rewards import FBeta
from moldrift.sampling import Sampling
from moldrift.scores import Completion, Scores
from moldrift.skeletons import SkeletonAutomaton

if TYPE_CHECKING:
    from moldrift.generate import constrained_generate
    from moldrift.logits_processor import AutomatonLogitsProcessor, PositionLogitsProcessor

__all__ = [
    "Automaton",
    "AutomatonLogitsProcessor",
    "Completion",
    "DriftError",
    "FBeta",
    "ForbiddenToken",
    "GeometryAutomaton",
    "InvalidSmiles",
    "Judge",
    "PositionLogitsProcessor",
    "PositionTemplates",
    "Report",
    "Sampling",
    "Scores",
    "SkeletonAutomaton",
    "TokenizerRefused",
    "__version__",
    "audit",
    "constrained_generate",
    "encode",
    "export_grammar",
    "fit",
    "inspect",
    "mine",
    "read_generations",
    "read_matrix",
    "train_tokenizer",
    "write_generations",
]

#: Names that need torch, and the modules that define them. They are imported on first use.
_WITH_TORCH = {
    "AutomatonLogitsProcessor": "moldrift.logits_processor",
    "PositionLogitsProcessor": "moldrift.logits_processor",
    "constrained_generate": "moldrift.generate",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'moldrift' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WITH_TORCH[name]), name)
