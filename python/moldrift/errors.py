"""What goes wrong, as exceptions. Every message is one line: place, problem, remedy."""


class DriftError(ValueError):
    """An input or option that cannot be used. The base of all exceptions of this package."""


class TokenizerRefused(DriftError):
    """A tokenizer whose tokens the automaton cannot tell, or that a processor cannot work with."""


class InvalidSmiles(DriftError):
    """A text that is no SMILES, or a molecule that the processor cannot write."""


class ForbiddenToken(DriftError):
    """A token in the text that the mask had forbidden, so that the processor cannot go on."""
