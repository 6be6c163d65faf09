"""What ``generate`` hands to ``constrained_generate``, in any release of transformers: by value, not by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from generation import Model, molecules  # noqa: E402

import moldrift  # noqa: E402
from moldrift import loop_inputs  # noqa: E402

load = cache(Model)
SMILES, MOST = molecules(3), 90
#: How this release of transformers calls the cache.
CACHE = next(
    name for name in ("cache", "past_key_values") if loop_inputs.takes(load("qwen-like").model, name)
)


def generate(loop: Callable[..., Any] = moldrift.constrained_generate, **options: Any) -> list[list[int]]:
    """Texts of three molecules by a loop."""
    model = load("qwen-like")
    lp = model.automaton.logits_processor(SMILES)
    if "constraint" in inspect.signature(loop).parameters:
        options["constraint"] = lp
    else:
        options["logits_processor"] = [lp]
    return model.generate(SMILES, custom_generate=loop, max_new_tokens=MOST, **options)


@cache
def expected() -> list[list[int]]:
    """The texts that ``generate`` itself writes."""
    model = load("qwen-like")
    lp = model.automaton.logits_processor(SMILES)
    return model.generate(SMILES, logits_processor=[lp], max_new_tokens=MOST)


def handed(more: Callable[[torch.Tensor], dict[str, Any]]) -> Callable[..., Any]:
    """A loop that is handed more than ``generate`` hands it; the prompts' mask says of what shape."""

    def loop(model: Any, input_ids: Any, **inputs: Any) -> Any:
        mask = inputs.get("attention_mask")
        mask = torch.ones_like(input_ids) if mask is None else mask
        return moldrift.constrained_generate(model, input_ids, **{**inputs, **more(mask)})

    return loop


#: By what they show: inputs that no release has, and that say nothing new.
HARMLESS: dict[str, Callable[[torch.Tensor], dict[str, Any]]] = {
    "None": lambda mask: {"later_cache": None, "inputs_embeds": None},
    "false": lambda mask: {"deferred_stop": False, "output_router_logits": False},
    "true": lambda mask: {"is_first_iteration": True, "deferred_stop": True},
    "numbers and texts": lambda mask: {"prefill_chunk": 128, "share": 0.5, "layout": "packed"},
    "empty collections": lambda mask: {"images": [], "extras": {}, "names": (), "rows": torch.zeros(0, 4)},
    "a list of numbers": lambda mask: {"chunks": [128, 128]},
    "an object for generate": lambda mask: {"stop_check": object(), "hook": print},
    "zeros": lambda mask: {"token_type_ids": torch.zeros_like(mask), "mm_token_type_ids": mask * 0},
    "the mask": lambda mask: {"padding_mask": mask, "decoder_mask": mask.bool()},
    "where tokens stand": lambda mask: {
        "places": mask.cumsum(1) - 1,
        "cache_position": torch.arange(mask.shape[1]),
        "columns": torch.arange(mask.shape[1])[None],
    },
    "plain positions": lambda mask: {"position_ids": (mask.cumsum(1) - 1).masked_fill(mask == 0, 1)},
    "labels": lambda mask: {"labels": mask * 3},
}

#: Inputs that could change what is written, each with what the error says of it.
REFUSED: dict[str, tuple[Callable[[torch.Tensor], dict[str, Any]], str]] = {
    "embeddings": (
        lambda mask: {"inputs_embeds": torch.zeros(*mask.shape, 8)},
        r"inputs_embeds \(float32 \[3, \d+, 8\]\)",
    ),
    "an image": (
        lambda mask: {"pixel_values": torch.zeros(3, 1, 2, 2)},
        r"pixel_values \(float32 \[3, 1, 2, 2\]\)",
    ),
    "an encoder's output": (
        lambda mask: {"encoder_outputs": transformers.modeling_outputs.BaseModelOutput(torch.ones(3, 2, 8))},
        r"encoder_outputs \(BaseModelOutput\)",
    ),
    "types of tokens": (lambda mask: {"token_type_ids": mask + 1}, r"token_type_ids \(int64 "),
    "other positions": (
        lambda mask: {"position_ids": mask.cumsum(1) + 7},
        r"position_ids \(int64 .* other than",
    ),
    "positions of images": (
        lambda mask: {"position_ids": torch.zeros(3, *mask.shape).long()},
        "position_ids",
    ),
    "columns of a cache": (
        lambda mask: {"cache_position": torch.arange(mask.shape[1]) + 4},
        "cache_position .* other than",
    ),
    "a tensor in a dict": (lambda mask: {"extras": {"deep": [torch.ones(2)]}}, r"extras \(dict\)"),
    "keys and values as tuples": (lambda mask: {"past": ((torch.ones(3, 1, 4, 2),) * 2,)}, r"past \(tuple\)"),
    "lengths of packed texts": (lambda mask: {"cu_seq_lens_q": torch.tensor([0, 5])}, "cu_seq_lens_q"),
    "no cache": (lambda mask: {"use_cache": False}, "use_cache=False"),
    "another cache": (lambda mask: {"second": transformers.DynamicCache()}, "more than one cache"),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_inputs_that_say_nothing_new_change_nothing(what: str) -> None:
    assert generate(handed(HARMLESS[what])) == expected()


@pytest.mark.parametrize("what", REFUSED)
def test_inputs_that_could_change_a_text_are_refused(what: str) -> None:
    more, words = REFUSED[what]
    with pytest.raises(ValueError, match=f"constrained_generate: {words}") as error:
        generate(handed(more))
    assert len(str(error.value).splitlines()) == 1
    assert "is not supported" in str(error.value)


def test_all_that_this_release_hands_over_is_dealt_with() -> None:
    """By name and value: what a release adds shows here first."""
    seen: dict[str, Any] = {}

    def loop(model: Any, input_ids: Any, **inputs: Any) -> Any:
        seen.update(inputs)
        return moldrift.constrained_generate(model, input_ids, **inputs)

    assert generate(loop) == expected()
    known = {"logits_processor", "stopping_criteria", "generation_config", "attention_mask", "position_ids"}
    assert seen.keys() - known == {"logits_to_keep", "use_cache", CACHE} | (seen.keys() & {"cache_position"})
    assert generate(legal_head=False) == expected()


def test_a_streamer_gets_the_prompt_alone() -> None:
    """As the README says: ``generate`` does not hand it on. Where a release does, this shows it."""
    heard: list[Any] = []

    class Streamer(transformers.generation.BaseStreamer):
        def put(self, value: Any) -> None:
            heard.append(value)

        def end(self) -> None:
            heard.append(None)

    assert generate(streamer=Streamer()) == expected()
    assert len(heard) == 1
    assert torch.equal(heard[0], load("qwen-like").prompts(SMILES)["input_ids"])


def test_embeddings_in_place_of_prompts() -> None:
    model = load("qwen-like")
    lp = model.automaton.logits_processor(["CO"])
    prompt = model.prompts(["CO"])["input_ids"]
    with pytest.raises(ValueError, match="inputs_embeds"):
        model.model.generate(
            inputs_embeds=model.model.get_input_embeddings()(prompt),
            custom_generate=moldrift.constrained_generate,
            constraint=lp,
            max_new_tokens=5,
        )


def test_an_empty_cache_is_used_and_a_full_one_refused() -> None:
    model = load("qwen-like").model
    mine = transformers.DynamicCache(config=model.config)
    assert generate(**{CACHE: mine}) == expected()
    assert mine.get_seq_length() > 0
    with pytest.raises(ValueError, match=f"the cache holds tokens already; leave {CACHE} out"):
        generate(handed(lambda mask: {CACHE: mine}))


@pytest.mark.parametrize("given", [False, True])
def test_a_sliding_window_is_refused_whatever_cache_there_is(given: bool) -> None:
    """A plain cache would hold its keys, but padding between tokens would count as a part of the window."""
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    size = load("qwen-like").model.config.vocab_size
    config = transformers.MistralConfig(vocab_size=size, num_key_value_heads=1, sliding_window=16, **shape)
    model = transformers.MistralForCausalLM(config)
    cache = {CACHE: transformers.DynamicCache()} if given else {}
    way = {
        "custom_generate": moldrift.constrained_generate,
        "constraint": load("qwen-like").automaton.logits_processor(["CO"]),
    }
    with pytest.raises(ValueError, match=r"a cache of \w*Sliding\w* is not supported"):
        model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=5, **way, **cache)


@contextmanager
def forward_of(forward: Callable[..., Any]) -> Iterator[Any]:
    """The model with another ``forward``, which is given the model's own first."""
    model = load("qwen-like").model
    own = model.forward
    model.forward = forward(own)
    try:
        yield model
    finally:
        del model.forward


def test_a_cache_by_any_other_name() -> None:
    """The fault that 5.24 showed: ``generate`` and the model call the cache by a new name."""

    def renamed(own: Callable[..., Any]) -> Callable[..., Any]:
        def forward(input_ids, attention_mask, position_ids, use_cache, return_dict, kv_store=None):  # type: ignore
            rest = {"attention_mask": attention_mask, "position_ids": position_ids, CACHE: kv_store}
            return own(input_ids, use_cache=use_cache, return_dict=return_dict, **rest)

        return forward

    def loop(model: Any, input_ids: Any, **inputs: Any) -> Any:
        inputs["kv_store"] = inputs.pop(CACHE)
        with forward_of(renamed):
            return moldrift.constrained_generate(model, input_ids, **inputs, legal_head=False)

    assert generate(loop) == expected()


def test_settings_reach_a_model_that_takes_them() -> None:
    seen: list[Any] = []

    def noting(own: Callable[..., Any]) -> Callable[..., Any]:
        def forward(input_ids: Any, scale: float = 1.0, **inputs: Any) -> Any:
            seen.append((scale, inputs.pop("layout", None)))
            return own(input_ids, **inputs)

        return forward

    def loop(model: Any, input_ids: Any, **inputs: Any) -> Any:
        with forward_of(noting):
            inputs |= {"scale": 2.0, "layout": "packed", "legal_head": False}
            return moldrift.constrained_generate(model, input_ids, **inputs)

    assert generate(loop) == expected()
    assert set(seen) == {(2.0, "packed")}


def test_an_object_that_the_model_names_is_refused() -> None:
    def naming(own: Callable[..., Any]) -> Callable[..., Any]:
        return lambda input_ids, memory=None, **inputs: own(input_ids, **inputs)

    def loop(model: Any, input_ids: Any, **inputs: Any) -> Any:
        with forward_of(naming):
            return moldrift.constrained_generate(model, input_ids, memory=object(), **inputs)

    with pytest.raises(ValueError, match=r"constrained_generate: memory \(object\) is not supported"):
        generate(loop)


def all_but(rows: int) -> Callable[[int, Any], list[int]]:
    """Forbids each row of the batch another digit."""
    model = load("qwen-like")
    digits = [model.tokenizer.convert_tokens_to_ids(str(digit)) for digit in range(10)]
    size = model.model.config.vocab_size

    def allowed(row: int, ids: Any) -> list[int]:
        assert row < rows
        return [one for one in range(size) if one != digits[1 + row % 9]]

    return allowed


@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 1.3},
        {"encoder_repetition_penalty": 1.2},
        {"no_repeat_ngram_size": 7},
        {"prefix_allowed_tokens_fn": all_but(6)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_processors_see_the_rows_that_they_know(options: dict[str, Any]) -> None:
    """Rows end one after the other; some processors remember one thing for each row of the batch."""
    model, smiles = load("qwen-like"), molecules(6)

    def texts(options: dict[str, Any], **way: Any) -> list[list[int]]:
        return model.generate(smiles, max_new_tokens=300, **way, **options)

    plain = texts(options, logits_processor=[model.automaton.logits_processor(smiles)])
    lp = model.automaton.logits_processor(smiles)
    assert texts(options, custom_generate=moldrift.constrained_generate, constraint=lp) == plain
    assert len(set(map(len, plain))) > 2, "the rows end together, so this shows nothing"
    unchanged = texts({}, logits_processor=[model.automaton.logits_processor(smiles)])
    assert plain != unchanged, "the option changes nothing, so this shows nothing"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"guidance_scale": 2.0}, "UnbatchedClassifierFreeGuidanceLogitsProcessor"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "the generation mode contrastive_search"),
    ],
)
def test_options_that_count_passes_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"constrained_generate: {words} is not supported"):
        generate(**options)
