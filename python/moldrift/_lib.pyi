"""The extension module. Use the package's own functions and classes; these are what they stand on.

Arrays are of NumPy; their shapes stand in square brackets.
"""

from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from moldrift.progress import ProgressCallback
from moldrift.tokenizers import TokenizerJson

__all__ = [
    "VERSION",
    "Constraint",
    "Judge",
    "Processor",
    "Request",
    "Rows",
    "Sampler",
    "SkeletonAutomaton",
    "Tokenizer",
    "are_different",
    "audit",
    "encode",
    "fit",
    "follow_requests",
    "inspect",
    "mine",
    "skeleton_of",
    "train_tokenizer",
]

VERSION: str

_Integers = npt.NDArray[np.int64]

@final
class Judge:
    """References, and how texts are judged."""

    def __new__(cls, options: dict[str, Any]) -> Judge: ...
    def add_texts(self, smiles: str, texts: list[str]) -> None:
        """Adds references of a molecule that are enriched text."""

    def add_conformers(self, smiles: str, written: str | None, conformers: npt.NDArray[np.float64]) -> None:
        """Adds references [conformers, heavy atoms, 3] in Å, atoms in the order of `written`, or of `smiles`."""

    def add_paths(self, paths: list[str], wanted: list[str] | None, progress: ProgressCallback | None) -> int:
        """Adds the conformers of files and folders; the number of records that were skipped."""

    def references(self) -> list[tuple[str, int]]:
        """Molecules with references, and how many each."""

    def without_texts(self, smiles: list[str]) -> list[str]:
        """The molecules that have references and are none of these."""

    def score(self, smiles: list[str], texts: list[str]) -> dict[str, Any]:
        """What texts come to; arrays by name."""

    def hit_report(self, smiles: list[str], measured: str, missing: str) -> str:
        """Hit@K over molecules, as JSON; `measured` is what `score` returned as `ensembles`."""

    def cluster_report(self, smiles: list[str], measured: str) -> str:
        """Clusters over molecules, as JSON."""

    def thresholds(self) -> npt.NDArray[np.float64]:
        """The thresholds of coverage, in Å, ascending."""

@final
class Tokenizer:
    """A tokenizer of Hugging Face as drift reads it."""

    @staticmethod
    def load(path: str | PathLike[str]) -> Tokenizer:
        """Reads a tokenizer.json, plain or gzipped, the one of a model folder, or one of drift's."""

    @staticmethod
    def locate(path: str | PathLike[str]) -> Path:
        """Where a tokenizer lies: a path is itself, a name its folder in the cache of Hugging Face."""

    @staticmethod
    def config_beside(path: str | PathLike[str]) -> str | None:
        """The text of the tokenizer_config.json beside a tokenizer."""

    @staticmethod
    def encoding_beside(path: str | PathLike[str]) -> str | None:
        """The encoding that a tokenizer or model is for, by what drift wrote beside it."""

    @staticmethod
    def from_json(name: str, json: bytes) -> Tokenizer:
        """A tokenizer from the bytes of its JSON."""

    @property
    def name(self) -> str:
        """Its name: that of its file or folder."""

    @property
    def size(self) -> int:
        """The greatest id and one more."""

    def id_of(self, token: str) -> int | None:
        """The id of a token, added ones too; None if it is none."""

    def likely_end(self, config: str | None = None) -> int | None:
        """The end of text of a tokenizer_config.json, else a token of a usual name."""

    def prompt_ids(self, prompt: str, begun: str = "[CONFORMER]") -> list[int]:
        """The ids of a prompt, with what stands before every text; ``begun`` is what the first tag lacks."""

    def prompt_ids_apart(self, prompt: str, begun: str) -> list[int] | None:
        """The ids of a prompt, if they are not those of its text alone; ``begun`` is what the first tag lacks."""

    def begins_as_behind(self, end: str, prompt: str, begun: str) -> bool:
        """Whether an answer behind a prompt begins as behind one of this end; ``begun`` is what the first tag lacks."""

    def ids(self, text: str) -> list[int]:
        """The ids of a text, without special tokens around it."""

    def text(self, ids: list[int]) -> str:
        """The text of ids, special tokens kept."""

    def answer_ids(self, answer: str) -> list[int]:
        """The ids of an answer behind a prompt: the canonical ones."""

    def answer_text(self, ids: list[int]) -> str:
        """The text of an answer's ids, special tokens kept."""

@final
class Processor:
    """A logit processor for one tokenizer and dialect."""

    def __new__(
        cls,
        tokenizer: Tokenizer,
        kind: str,
        dialect: str,
        eos: int,
        others: list[int] = ...,
        placeholder: str | None = None,
        conformers: int = 1,
        opened: bool = False,
        bounds: float = 0.2,
        signs: bool = True,
        planes: bool = True,
        prompt_end: str | None = None,
    ) -> Processor: ...
    @property
    def kind(self) -> str:
        """Which processor it is."""

    @property
    def eos(self) -> int:
        """The token that ends a text."""

    @property
    def size(self) -> tuple[int, int] | None:
        """States of the grammar of one coordinate, and tokens that are legal somewhere in it."""

    def constraint(self, smiles: str) -> Constraint:
        """The constraint of one molecule."""

    def legal(
        self, smiles: list[str], completions: list[_Integers], fillers: list[int]
    ) -> list[tuple[_Integers, npt.NDArray[np.int32]]]:
        """The legal ids at every token of completions, one of each SMILES: offsets [tokens + 1] and ids."""

@final
class SkeletonAutomaton:
    """The automaton of a skeleton for one tokenizer."""

    def __new__(cls, tokenizer: Tokenizer, source: str, eos: int, begun: str = "") -> SkeletonAutomaton: ...
    @property
    def name(self) -> str:
        """The name of the skeleton."""

    def constraint(self, prompt: str, text: str | None = None, place: str = "prompt") -> Constraint:
        """The constraint of a prompt, a JSON object."""

    def prompt_ids(self, prompt: str, text: str | None = None, place: str = "prompt") -> list[int]:
        """The ids of a prompt before its text."""

@final
class Constraint:
    """What one molecule's text may be."""

    @property
    def skeleton(self) -> str:
        """The molecule's text with empty blocks."""

    def allowed(self, prefix: list[int]) -> tuple[str, list[int]]:
        """What may follow a prefix: ("only", ids), ("except", ids) or ("any", [])."""

    def forced_run(self, prefix: list[int]) -> list[int]:
        """The tokens that are forced behind a prefix."""

    def is_over(self, text: list[int]) -> bool:
        """Whether a text has ended."""

    def grammar(self, format: str) -> str:
        """The automaton as a grammar in token ids: lark, ebnf or json."""

    def tables(self) -> dict[str, Any]:
        """The automaton as arrays."""

@final
class Request:
    """The text of one request of an engine: where it is in its constraint."""

    def __new__(cls, constraint: Constraint) -> Request: ...
    @staticmethod
    def ended(eos: int, problem: str) -> Request:
        """A request whose text ends at once, because of a problem."""

    @property
    def written(self) -> int:
        """The number of tokens that the text has taken."""

    @property
    def problem(self) -> str | None:
        """The token that was not allowed, if there was one. The text ends there."""

def follow_requests(
    requests: list[Request], tokens: list[list[int]]
) -> tuple[tuple[_Integers, npt.NDArray[np.int32]], list[bool]]:
    """Passes each request its new tokens. Ids as offsets and ids, and for each request whether they are those that may
    not come next, or those that may."""

@final
class Sampler:
    """A way to draw tokens whose noise is keyed by the text."""

    def __new__(
        cls,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int = 0,
    ) -> Sampler: ...
    @staticmethod
    def preset(name: str) -> tuple[float | None, int | None, float | None, float | None]:
        """Temperature, top-k, top-p and min-p of a preset."""

    def draw(
        self, ids: list[int], logits: list[float], position: int, prompt: int = 0, generation: int = 0
    ) -> int:
        """Draws one of the sorted ids by their logits."""

@final
class Rows:
    """Follows the rows of one call of generate."""

    def __new__(
        cls,
        constraints: list[Constraint],
        prompts: list[int],
        fillers: list[int],
        sampler: Sampler | None = None,
    ) -> Rows: ...
    def begin(self, rows: int) -> int:
        """Begins with so many rows; returns how many each molecule has."""

    def step(self, written: _Integers) -> None:
        """Follows all tokens behind the prompts, [rows, tokens]."""

    def over(self) -> npt.NDArray[np.bool_]:
        """Whether each row is over, [rows]."""

    @property
    def wants_argmax(self) -> bool:
        """Whether `observe` is needed before each mask."""

    def observe(self, argmax: _Integers) -> None:
        """Learns the most likely token of each row's unmasked logits, [active]."""

    def places(self, vocabulary: int) -> tuple[_Integers, _Integers | None, _Integers]:
        """Places kept, rows that list what is legal (None for all), places blocked in the others."""

    def union(self, vocabulary: int) -> tuple[_Integers, _Integers] | None:
        """All ids that some row lists [union], and the places kept in logits [active, union]."""

    def listed(self, vocabulary: int) -> tuple[_Integers, _Integers] | None:
        """The legal ids of each row [active, longest], and how many there are [active]."""

    def draws(
        self, vocabulary: int, kept: npt.NDArray[np.float32], full: npt.NDArray[np.float32] | None = None
    ) -> _Integers:
        """Draws a token for each row, [active]."""

    def advance(self, tokens: _Integers | None, most: int, pad: int = 0) -> tuple[_Integers, _Integers]:
        """Takes a token for each row and what is forced behind it; returns what the model has not read."""

    def drop_over(self) -> _Integers:
        """Leaves rows that are over out; returns the places of the others."""

    def active(self) -> _Integers:
        """The rows that logits are for, [active]."""

    def stop(self, row: int, length: int) -> None:
        """Ends a row's text after so many tokens."""

    def end_behind(self, last: list[int]) -> None:
        """Lets advance end texts behind the first of these tokens."""

    def text(self, row: int) -> list[int]:
        """The tokens of a row."""

def are_different(a: str, b: str) -> bool:
    """Whether two SMILES are known to be different molecules, ignoring stereo and isotopes."""

def skeleton_of(smiles: str) -> str:
    """The text of a molecule with empty blocks."""

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
