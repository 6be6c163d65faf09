"""The extension module. Use the package's own functions and classes; these are what they stand on."""

from typing import Any

from moldrift.progress import ProgressCallback
from moldrift.tokenizers import TokenizerJson

VERSION: str

def fit(options: dict[str, Any], progress: ProgressCallback | None) -> str:
    """The placeholder of least harm for each tokenizer."""

def mine(options: dict[str, Any], progress: ProgressCallback | None) -> str:
    """Statistics of conformers, and a store."""

def encode(options: dict[str, Any], progress: ProgressCallback | None) -> tuple[str, bytes | None]:
    """Training text of conformers: the report, and the lines where no file was given."""

def audit(options: dict[str, Any], progress: ProgressCallback | None) -> str:
    """Verdicts on generated text."""

def train_tokenizer(options: dict[str, Any], progress: ProgressCallback | None) -> str:
    """A tokenizer that takes few tokens for a block, in a folder."""

def inspect(texts: list[str], tokenizer: str | TokenizerJson, placeholder: str) -> str:
    """The tokens of texts, and the drift of their blocks."""
