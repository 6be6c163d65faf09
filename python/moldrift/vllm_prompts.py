"""Gives vLLM one grammar for each prompt. TRL itself calls vLLM with the same ``SamplingParams`` for all prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any


def constrain(generation: Any, grammar_of: Callable[[Sequence[int]], str]) -> None:
    """Wraps TRL's vLLM, a colocated engine or the client of a server, so that each prompt gets its own grammar."""
    if getattr(generation, "llm", None) is not None:
        generation.llm = _ConstrainedEngine(generation.llm, grammar_of)
    elif getattr(generation, "vllm_client", None) is not None:
        generation.vllm_client = _ConstrainedClient(generation.vllm_client, grammar_of)


class _Stand:
    """A wrapper of an object of TRL or vLLM. Attributes that a subclass does not define are the object's."""

    def __init__(self, behind: Any, grammar_of: Callable[[Sequence[int]], str]) -> None:
        self._behind, self._grammar_of = behind, grammar_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


class _ConstrainedEngine(_Stand):
    """A ``vllm.LLM`` that gets one ``SamplingParams`` for all prompts, and passes on one for each prompt."""

    def generate(self, prompts: Sequence[Any], sampling_params: Any, **named: Any) -> Any:
        from vllm.sampling_params import StructuredOutputsParams

        def parameters(prompt: Any) -> Any:
            one = deepcopy(sampling_params)
            one.structured_outputs = StructuredOutputsParams(
                grammar=self._grammar_of(prompt["prompt_token_ids"])
            )
            return one

        return self._behind.generate(prompts, sampling_params=[parameters(one) for one in prompts], **named)


class _ConstrainedClient(_Stand):
    """TRL's client of a vLLM server. It sends one request for each prompt, with its grammar."""

    #: The largest number of concurrent requests.
    AT_ONCE = 64

    def generate(
        self, prompts: Sequence[Any], *, generation_kwargs: Any = None, **named: Any
    ) -> dict[str, Any]:
        def ask(prompt: Any) -> dict[str, Any]:
            options = {
                **(generation_kwargs or {}),
                "structured_outputs": {"grammar": self._grammar_of(prompt)},
            }
            return self._behind.generate(prompts=[prompt], generation_kwargs=options, **named)

        with ThreadPoolExecutor(min(self.AT_ONCE, max(len(prompts), 1))) as pool:
            answers = list(pool.map(ask, prompts))
        # The answers of a prompt are adjacent, in the order of the prompts, as in one answer to all prompts.
        return {
            name: None if answers[0][name] is None else [one for answer in answers for one in answer[name]]
            for name in (answers[0] if answers else ())
        }
