"""One grammar for each prompt between TRL and its vLLM, which TRL asks with one ``SamplingParams`` for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any


def constrain(generation: Any, grammar_of: Callable[[Sequence[int]], str]) -> None:
    """Puts a grammar for each prompt between TRL and its vLLM: a colocated engine, or the client of a server."""
    if getattr(generation, "llm", None) is not None:
        generation.llm = _ConstrainedEngine(generation.llm, grammar_of)
    elif getattr(generation, "vllm_client", None) is not None:
        generation.vllm_client = _ConstrainedClient(generation.vllm_client, grammar_of)


class _Stand:
    """Stands before an object of TRL or vLLM: everything but what a subclass defines is the object's."""

    def __init__(self, behind: Any, grammar_of: Callable[[Sequence[int]], str]) -> None:
        self._behind, self._grammar_of = behind, grammar_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


class _ConstrainedEngine(_Stand):
    """A ``vllm.LLM`` that is asked with one ``SamplingParams`` for all prompts, and asks with one for each."""

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
    """A client of TRL for a server of vLLM that sends a request for each prompt, with its grammar."""

    #: Requests in flight.
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
        # Those of a prompt stand together, in the order of the prompts, as in one answer to all.
        return {
            name: None if answers[0][name] is None else [one for answer in answers for one in answer[name]]
            for name in (answers[0] if answers else ())
        }
