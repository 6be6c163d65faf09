"""The exceptions of this package. Every message is one line: place, problem, remedy."""


class DriftError(ValueError):
    """An input or option that cannot be used. The base of all exceptions of this package."""


class TokenizerRefused(DriftError):
    """A tokenizer that the automaton cannot follow exactly, or that a processor cannot work with."""


class InvalidSmiles(DriftError):
    """A text that is not a SMILES, or a SMILES without atoms."""


class ForbiddenToken(DriftError):
    """A token that the mask had forbidden is in the text, so the processor cannot continue."""
