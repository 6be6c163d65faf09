"""The inputs that ``generate`` passes to a custom decoding loop: some are used, some go to the model, some are refused.

``generate`` passes the inputs that the user gave for the model, and inputs that it made itself. Both differ between
releases of transformers: 4.57 adds ``cache_position``, 5 adds ``position_ids``, and 5.24 calls the cache ``cache``.
So an input with an unknown name is judged by its value:

- The cache is recognised by its type, and goes to the model under the name that it came with. It must be empty.
- None and empty collections are ignored. So is a tensor of integers that says no more than the attention mask: zeros,
  the mask, or the positions of the tokens.
- Numbers, texts, True and False go to the model with each pass if the model takes them, as in ``generate``.
- Any other tensor, a collection that contains one, and any other object that is a parameter of the model's ``forward``
  could change the text. They are refused, with name and value in the error.
- An object that is not a parameter of ``forward`` is meant for the loops of ``generate``. It is ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

#: Inputs that the loop itself passes to the model or checks by name, and ``labels``, which ``generate`` does not pass
#: to the model either.
_OWN = frozenset(
    {
        "attention_mask",
        "cache_position",
        "input_ids",
        "labels",
        "logits_to_keep",
        "position_ids",
        "return_dict",
        "use_cache",
    }
)

#: The names that models use for their cache, the newest first.
_CACHE_NAMES = ("cache", "past_key_values")


@dataclass
class LoopInputs:
    """The inputs of a loop.

    Attributes:
        mask: the attention mask of the prompts, 0 for padding, ``[rows, length]``.
        cache: an empty cache whose layers store all keys and values.
        cache_name: the model's name for the cache.
        settings: numbers, texts and flags that go to the model with each pass.
    """

    mask: torch.Tensor
    cache: Any
    cache_name: str
    settings: dict[str, Any]

    def settings_of(self, module: Any) -> dict[str, Any]:
        """The settings that a module's ``forward`` takes."""
        names, takes_all = _parameters(module.forward)
        return {name: value for name, value in self.settings.items() if takes_all or name in names}


def read(model: Any, input_ids: torch.Tensor, inputs: Mapping[str, Any]) -> LoopInputs:
    """Reads the inputs that ``generate`` passed to a loop.

    Args:
        model: a decoder of transformers.
        input_ids: prompts ``[rows, length]``.
        inputs: the other inputs by name.

    Raises:
        ValueError: for an input that could change the text and is not supported.
    """
    if inputs.get("use_cache") is False:
        raise refused("use_cache=False")
    given = inputs.get("attention_mask")
    mask = torch.ones_like(input_ids) if given is None else given.long()
    cache, cache_name = _cache(model, inputs)
    named, _ = _parameters(model.forward)
    # Parameters of `prepare_inputs_for_generation` that `forward` does not have are used up before a pass.
    used_up = _parameters(getattr(model, "prepare_inputs_for_generation", model.forward))[0] - named
    settings = {}
    for name, value in inputs.items():
        if name in _OWN or value is cache:
            continue
        kind = _kind(value, mask)
        if kind == "data" or (kind == "object" and name in named):
            raise refused(f"{name} ({_described(value)})")
        if kind == "setting" and name not in used_up:
            settings[name] = value
    _check_places(inputs, mask)
    return LoopInputs(mask, cache, cache_name, settings)


def refused(what: str) -> ValueError:
    """The error for something that is not supported."""
    return ValueError(f"constrained_generate: {what} is not supported; give logits_processor=[…] to generate")


def takes(module: Any, name: str) -> bool:
    """Whether a module's ``forward`` has a parameter of this name."""
    return name in _parameters(module.forward)[0]


def _parameters(function: Callable[..., Any]) -> tuple[set[str], bool]:
    """The names of a function's parameters, and whether it takes further keyword arguments."""
    parameters = inspect.signature(function).parameters.values()
    named = {one.name for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
    return named, any(one.kind is one.VAR_KEYWORD for one in parameters)


def _cache(model: Any, inputs: Mapping[str, Any]) -> tuple[Any, str]:
    """The cache among the inputs, or a new one, and the model's name for it."""
    from transformers import DynamicCache
    from transformers.cache_utils import Cache

    found = {name: value for name, value in inputs.items() if isinstance(value, Cache)}
    if len({id(value) for value in found.values()}) > 1:
        raise refused(f"more than one cache ({', '.join(found)})")
    fresh = DynamicCache(config=model.config)
    cache = next(iter(found.values()), fresh)
    # The cache that the model would make for itself shows whether its layers attend to all tokens.
    for one in (cache, fresh):
        _check_cache(one)
    if cache.get_seq_length() > 0:
        name = next(iter(found))
        raise ValueError(f"constrained_generate: the cache holds tokens already; leave {name} out")
    named = [name for name in (*found, *_CACHE_NAMES) if takes(model, name)]
    return cache, named[0] if named else next(iter(found), _CACHE_NAMES[0])


def _check_cache(cache: Any) -> None:
    """Refuses a cache whose keys and values cannot be packed. Only plain layers store all of them."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    layers = cache.layers if type(cache) is DynamicCache else []
    others = sorted({type(one).__name__ for one in layers if type(one) is not DynamicLayer})
    if others or type(cache) is not DynamicCache or getattr(cache, "offloading", False):
        names = ", ".join(others or sorted({type(one).__name__ for one in getattr(cache, "layers", [])}))
        raise ValueError(
            f"constrained_generate: a cache of {names or type(cache).__name__} is not supported; "
            "give logits_processor=[…] to generate, or leave cache_implementation out"
        )


def _check_places(inputs: Mapping[str, Any], mask: torch.Tensor) -> None:
    """Refuses positions that differ from the positions in left-padded prompts, from which the loop counts on."""
    for name, places in (("position_ids", _positions(mask)), ("cache_position", _columns(mask))):
        value = inputs.get(name)
        if value is not None and not _agrees(value, places, mask):
            raise refused(f"{name} ({_described(value)}) other than the prompt's own")


def _positions(mask: torch.Tensor) -> torch.Tensor:
    """The position of each token in its text, ``[rows, length]``."""
    return mask.cumsum(1) - 1


def _columns(mask: torch.Tensor) -> torch.Tensor:
    """The column of each token in the batch, ``[length]``."""
    return torch.arange(mask.shape[1], device=mask.device)


def _agrees(value: Any, places: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether a tensor contains these numbers for all tokens except padding."""
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex():
        return False
    try:
        value = value.to(mask.device).expand_as(mask)
    except RuntimeError:  # of another shape than the prompts
        return False
    return bool(((value == places) | (mask == 0)).all())


def _kind(value: Any, mask: torch.Tensor) -> str:
    """The kind of a value: ``nothing``, a ``setting``, ``data``, or an ``object`` whose content is unknown."""
    if value is None:
        return "nothing"
    if isinstance(value, (bool, int, float, str)):
        return "setting"
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return "nothing" if _is_plain(value, mask) else "data"
    if isinstance(value, (Mapping, Set, list, tuple)):
        inside = value.values() if isinstance(value, Mapping) else value
        kinds = {_kind(one, mask) for one in inside}
        return next((kind for kind in ("data", "object", "setting") if kind in kinds), "nothing")
    return "object"


def _is_plain(value: Any, mask: torch.Tensor) -> bool:
    """Whether an array contains no more information than the mask."""
    if not isinstance(value, torch.Tensor):
        return bool(value.size == 0)
    if value.numel() == 0:
        return True
    known = (torch.zeros_like(mask), mask, _positions(mask), _columns(mask))
    return any(_agrees(value, one, mask) for one in known)


def _described(value: Any) -> str:
    """A short description of a value."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return type(value).__name__
