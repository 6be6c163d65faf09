"""The automaton as a logits processor of vLLM (V1), for what a grammar cannot express: the geometry of a molecule, and
free text before the marker of a skeleton.

    llm = LLM(model, logits_processors=["moldrift.vllm:AutomatonLogitsProcessor"])
    llm.generate(prompt, SamplingParams(extra_args={"moldrift": {"smiles": "CCO", "geometry": True}}))
    salt = {"skeleton": "simple-cif", "prompt": {"formula": "NaCl"}}
    llm.generate(prompt, SamplingParams(extra_args={"moldrift": salt}))

vLLM starts the processor itself, once for an engine, with the tokenizer of the engine's model. A request without
``moldrift`` in its ``extra_args`` is left alone. Source of the interface: vLLM 0.32,
``vllm/v1/sample/logits_processor/interface.py``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

import moldrift._lib as _lib
import moldrift.sources as sources
from moldrift.automaton import Automaton, GeometryAutomaton
from moldrift.errors import DriftError, TokenizerRefused
from moldrift.skeletons import SkeletonAutomaton

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.config import VllmConfig

_log = logging.getLogger(__name__)

#: The options of a request beside ``smiles`` and ``geometry``: of both automata, and of `GeometryAutomaton` alone.
_OPTIONS = frozenset({"dialect", "encoding", "conformers", "opened", "prompt_end"})
_STRENGTH = frozenset({"bounds", "signs", "planes"})
_TRUTH = (lambda value: isinstance(value, bool), "true or false")
#: Whether the value of an option is right, and what it should be.
_VALUES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "dialect": (lambda value: value is None or isinstance(value, str), "fixed or stripped"),
    "encoding": (
        lambda value: value is None or isinstance(value, (str, dict)),
        "a name, a path or its content",
    ),
    "conformers": (lambda value: type(value) is int and 1 <= value <= 1000, "1 to 1,000"),
    "opened": _TRUTH,
    "prompt_end": (lambda value: value is None or isinstance(value, str), "a text"),
    "geometry": _TRUTH,
    "bounds": (lambda value: type(value) in (int, float), "a number"),
    "signs": _TRUTH,
    "planes": _TRUTH,
}


#: How many automata an engine keeps: of molecules with different options, and of skeletons. The one that was not asked for
#: longest is dropped for another; requests that it serves keep it until they end.
AUTOMATA = 32


@dataclass
class _Row:
    """One request in the batch: its place in the constraint, and the tokens that vLLM has drawn, a list that grows."""

    request: _lib.Request
    output_ids: list[int]

    def news(self) -> list[int]:
        """The tokens since the last step. A placeholder of asynchronous scheduling, -1, is not a token yet."""
        return [token for token in self.output_ids[self.request.written :] if token >= 0]


class AutomatonLogitsProcessor(LogitsProcessor):
    """Holds each request with ``extra_args={"moldrift": {"smiles": …}}`` to the text of its molecule, or of a skeleton.

    Further keys of the mapping are ``geometry`` (true for `moldrift.GeometryAutomaton`), and the options of the two
    classes: ``dialect``, ``encoding``, ``conformers``, ``opened``, ``prompt_end``, and with ``geometry`` also ``bounds``,
    ``signs`` and ``planes``. A request ``{"skeleton": …, "prompt": {…}}`` instead is held to a text of the skeleton (a
    name, a path or its content) for the data of its prompt, as by `moldrift.SkeletonAutomaton`; ``"begun"`` is the
    beginning of the text that the prompt ends with. vLLM itself draws the tokens, so temperature, top-p, seeds and
    log-probabilities work as always.
    Speculative decoding takes no logits processors; vLLM says so when it starts.
    """

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuses a request that names neither molecule nor skeleton, or options that do not exist.

        Raises:
            ValueError: with what is wrong; a server answers with status 400.
        """
        asked = _asked(sampling_params)
        if asked is None:
            return
        if isinstance(asked, dict) and "skeleton" in asked:
            return _check_skeleton(asked)
        if not isinstance(asked, dict) or not isinstance(asked.get("smiles"), str):
            raise ValueError('moldrift: give {"smiles": "…"}, the SMILES of the prompt')
        known = _OPTIONS | {"smiles", "geometry"} | (_STRENGTH if asked.get("geometry") else frozenset())
        if unknown := sorted(set(asked) - known):
            more = "" if asked.get("geometry") else "; bounds, signs and planes need geometry"
            raise ValueError(f"moldrift: {', '.join(unknown)} is no option of a request{more}")
        for name, (is_right, needed) in _VALUES.items():
            if name in asked and not is_right(asked[name]):
                raise ValueError(f"moldrift: {name} is {asked[name]!r:.60}; give {needed}")
        try:
            if asked.get("geometry"):
                strength = {name: asked[name] for name in _STRENGTH if name in asked}
                _geometry(tuple(sorted(strength.items()))).constraint(asked["smiles"])
            else:
                _lib.skeleton_of(asked["smiles"])
            named = {name: asked[name] for name in ("dialect", "encoding") if name in asked}
            _check_encoding(json.dumps(named, sort_keys=True))
        except (DriftError, TypeError, ValueError) as error:
            raise ValueError(f"moldrift: {error}") from error

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        del is_pin_memory
        self._config, self._device = vllm_config.model_config, device
        self._automaton = lru_cache(maxsize=AUTOMATA)(self._of_options)
        self._skeleton = lru_cache(maxsize=AUTOMATA)(self._of_skeleton)
        self._rows: dict[int, _Row] = {}

    @cached_property
    def _source(self) -> sources.TokenizerSource:
        """The tokenizer. The model's own folder also knows the end of a text and the encoding."""
        return sources.read(str(self._config.tokenizer or self._config.model))

    def _of_options(self, geometry: bool, options: str) -> Automaton:
        kind = GeometryAutomaton if geometry else Automaton
        return kind(self._source, **json.loads(options))

    def _constraint(self, asked: dict[str, Any], prompt_ids: list[int] | None) -> _lib.Constraint:
        """The constraint of a request. One automaton serves all requests with the same options or skeleton."""
        if "skeleton" not in asked:
            options = {name: value for name, value in asked.items() if name not in ("smiles", "geometry")}
            content = json.dumps(options, sort_keys=True)
            automaton = self._automaton(bool(asked.get("geometry")), content)
            if prompt_ids is not None:
                automaton.check_prompt(prompt_ids, asked["smiles"])
            return automaton.constraint(asked["smiles"])
        content = json.dumps([asked["skeleton"], asked.get("begun", "")], sort_keys=True)
        return self._skeleton(content).constraint(asked["prompt"])

    def _of_skeleton(self, content: str) -> SkeletonAutomaton:
        skeleton, begun = json.loads(content)
        return SkeletonAutomaton(self._source, skeleton, begun=begun)

    def is_argmax_invariant(self) -> bool:
        """False: the most likely token may be forbidden."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Takes requests that came, went or changed their row. A request that vLLM had put aside comes back with the
        tokens that it has."""

        def row(params: SamplingParams, prompt_ids: list[int] | None, output_ids: list[int]) -> _Row | None:
            asked = _asked(params)
            if asked is None:
                return None
            try:
                return _Row(_lib.Request(self._constraint(asked, prompt_ids)), output_ids)
            except (DriftError, TypeError, ValueError, OverflowError) as error:
                # What only the tokenizer of the model shows. An error here would end the engine with all requests.
                of = asked.get("smiles", asked.get("prompt"))
                _log.error("moldrift: %s; the text of %r ends at once", error, of)
                return _Row(_lib.Request.ended(self._source.eos, str(error)), output_ids)

        process_dict_updates(self._rows, batch_update, row)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Sets the logits of all forbidden tokens to -inf, ``[requests, vocabulary]``, in place.

        A token that the mask had forbidden can only come from what vLLM does after its logits processors. An error would
        end the engine with all requests, so that text alone ends, and the log says so.
        """
        if not self._rows:
            return logits
        rows = list(self._rows.values())
        fine = [row.request.problem is None for row in rows]
        (offsets, ids), forbids = _lib.follow_requests(
            [row.request for row in rows], [row.news() for row in rows]
        )
        for row, was_fine in zip(rows, fine, strict=True):
            if was_fine and row.request.problem is not None:
                _log.error("moldrift: %s; this text ends here", row.request.problem)
        places, counts = torch.tensor(list(self._rows)), torch.from_numpy(offsets).diff()
        at = places.repeat_interleave(counts).to(logits.device)
        listed = torch.from_numpy(ids).long().to(logits.device)
        are_forbidden = torch.tensor(forbids)
        is_forbidden = are_forbidden.repeat_interleave(counts).to(logits.device)
        # A model may have fewer logits than the tokenizer has ids.
        inside = listed < logits.shape[1]
        forbidden, legal = inside & is_forbidden, inside & ~is_forbidden
        # Earlier processors may have forbidden all legal tokens. A row without a finite logit would break sampling.
        kept = logits[at[legal], listed[legal]].clamp_(min=torch.finfo(logits.dtype).min / 16)
        logits[places[~are_forbidden].to(logits.device)] = float("-inf")
        logits[at[legal], listed[legal]] = kept
        logits[at[forbidden], listed[forbidden]] = float("-inf")
        if any(forbids):
            # Behind the tokenizer's ids a model may have others, which stand for nothing.
            logits[places[are_forbidden].to(logits.device), self._source.tokenizer.size :] = float("-inf")
        return logits


@lru_cache(maxsize=AUTOMATA)
def _geometry(strength: tuple[tuple[str, Any], ...]) -> GeometryAutomaton:
    """An automaton that tells, without the model's tokenizer, whether a strength exists and the geometry of a molecule
    is known."""
    return GeometryAutomaton("qwen-like", **dict(strength))


@lru_cache(maxsize=AUTOMATA)
def _check_encoding(content: str) -> None:
    """Refuses the name of an encoding that does not exist.

    Raises:
        DriftError: with what is wrong.
    """
    try:
        Automaton("qwen-like", **json.loads(content))
    except TokenizerRefused:
        # Of the tokenizer that stands in here. The model's own is asked later.
        return


def _check_skeleton(asked: dict[str, Any]) -> None:
    """Refuses a request whose skeleton cannot be read, or whose prompt lacks what it needs.

    Raises:
        ValueError: with what is wrong.
    """
    if unknown := sorted(set(asked) - {"skeleton", "prompt", "begun"}):
        raise ValueError(f"moldrift: {', '.join(unknown)} is no option of a request with a skeleton")
    if not isinstance(asked["skeleton"], (str, dict)) or not isinstance(asked.get("prompt"), dict):
        raise ValueError(
            'moldrift: give {"skeleton": "…", "prompt": {…}}, a skeleton and the data of the prompt'
        )
    if not isinstance(asked.get("begun", ""), str):
        raise ValueError("moldrift: give `begun` as text, the beginning that the prompt ends with")
    try:
        _skeleton(json.dumps(asked["skeleton"])).constraint(asked["prompt"])
    except TokenizerRefused:
        # Of the tokenizer that stands in here. The model's own is asked later.
        return
    except (DriftError, TypeError, ValueError) as error:
        raise ValueError(f"moldrift: {error}") from error


@lru_cache(maxsize=AUTOMATA)
def _skeleton(content: str) -> SkeletonAutomaton:
    """An automaton that tells, without the model's tokenizer, whether a skeleton can be read and what it needs."""
    return SkeletonAutomaton("qwen-like", json.loads(content))


def _asked(params: SamplingParams) -> Any:
    """What a request asks of this module, or None.

    Raises:
        ValueError: if it is a text that is no JSON. A server's requests hold texts and numbers only, so there the mapping
            is JSON in a text.
    """
    asked = (params.extra_args or {}).get("moldrift")
    if not isinstance(asked, str):
        return asked
    try:
        return json.loads(asked)
    except ValueError as error:
        raise ValueError(f"moldrift: {asked!r} is no JSON ({error})") from error
