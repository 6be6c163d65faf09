"""The extension module. Use the package's own functions and classes; these are what they stand on."""

from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

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

Ids = npt.NDArray[np.int64]

def skeleton_of(smiles: str) -> str:
    """The skeleton of a SMILES, spelled as the users' encoder spells it."""

class Tokenizer:
    """A tokenizer of Hugging Face as drift reads it."""

    name: str
    size: int
    @staticmethod
    def load(path: str | PathLike[str]) -> Tokenizer: ...
    @staticmethod
    def from_json(name: str, json: bytes) -> Tokenizer: ...
    @staticmethod
    def config_beside(path: str | PathLike[str]) -> str | None: ...
    def id_of(self, token: str) -> int | None: ...
    def likely_end(self, config: str | None = None) -> int | None: ...
    def prompt_ids(self, prompt: str) -> list[int]: ...
    def answer_ids(self, answer: str) -> list[int]: ...
    def answer_text(self, ids: list[int]) -> str: ...

class Processor:
    """A logit processor of one tokenizer; makes the constraints of molecules, on any thread."""

    kind: str
    eos: int
    size: tuple[int, int] | None
    def __init__(
        self,
        tokenizer: Tokenizer,
        kind: str,
        dialect: str,
        eos: int,
        others: list[int] = ...,
        placeholder: str | None = None,
    ) -> None: ...
    def constraint(self, smiles: str) -> Constraint: ...

class Constraint:
    """What one molecule's text may be."""

    skeleton: str
    def allowed(self, prefix: list[int]) -> tuple[Literal["only", "except", "any"], list[int]]: ...
    def forced_run(self, prefix: list[int]) -> list[int]: ...
    def is_over(self, text: list[int]) -> bool: ...
    def grammar(self, format: str) -> str: ...
    def tables(self) -> dict[str, Any]: ...

class Sampler:
    """A way to draw tokens whose noise is keyed by seed, prompt, generation, position and token."""

    def __init__(
        self,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int = 0,
    ) -> None: ...
    @staticmethod
    def preset(name: str) -> tuple[float | None, int | None, float | None, float | None]: ...
    def draw(
        self, ids: list[int], logits: list[float], position: int, prompt: int = 0, generation: int = 0
    ) -> int: ...

class Rows:
    """Follows the rows of one call of ``generate``. ``active`` rows are those that logits are for."""

    wants_argmax: bool
    def __init__(
        self,
        constraints: list[Constraint],
        prompts: list[int],
        fillers: list[int],
        sampler: Sampler | None = None,
    ) -> None: ...
    def begin(self, rows: int) -> int: ...
    def step(self, written: Ids) -> None: ...
    def over(self) -> npt.NDArray[np.bool_]: ...
    def active(self) -> Ids: ...
    def drop_over(self) -> Ids: ...
    def observe(self, argmax: Ids) -> None: ...
    def places(self, vocabulary: int) -> tuple[Ids, Ids | None, Ids]: ...
    def union(self, vocabulary: int) -> tuple[Ids, Ids] | None: ...
    def listed(self, vocabulary: int) -> tuple[Ids, Ids] | None: ...
    def draws(
        self, vocabulary: int, kept: npt.NDArray[np.float32], full: npt.NDArray[np.float32] | None = None
    ) -> Ids: ...
    def advance(self, tokens: Ids | None, most: int, pad: int = 0) -> tuple[Ids, Ids]: ...
    def stop(self, row: int) -> None: ...
    def text(self, row: int) -> list[int]: ...
