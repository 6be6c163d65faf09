"""What ``generate`` hands to a decoding loop in place of its own: what is used, what goes on to the model, what is
refused.

``generate`` gives such a loop what the user gave for the model, and what it made itself. Both differ between
releases of transformers: 4.57 adds ``cache_position``, 5 adds ``position_ids``, and 5.24 calls the cache ``cache``.
So an input whose name is not known here is judged by its value:

- The cache is known by its type, whatever its name is, and goes to the model under that name. It must be empty.
- None and empty collections are ignored. So is a tensor of whole numbers that says no more than the attention
  mask: zeros, the mask, or where the tokens stand.
- Numbers, texts, True and False go to the model with each pass, where it takes them, as ``generate`` hands them on.
- Any other tensor, a collection that holds one, and any other object that the model's ``forward`` names, could
  change what is written. They are refused by name and value.
- An object that ``forward`` does not name is for the loops of ``generate`` alone. It is ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

#: What the loop itself hands to the model or checks by name, and ``labels``, which ``generate`` does not hand on
#: either.
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

#: How a model may call its cache, the newest name first.
_CACHE_NAMES = ("cache", "past_key_values")


@dataclass
class LoopInputs:
    """What a loop works with.

    Attributes:
        mask: which tokens of the prompts are no padding, ``[rows, length]``.
        cache: an empty cache whose layers hold whole keys and values.
        cache_name: how the model calls it.
        settings: numbers, texts and flags that go to the model with each pass.
    """

    mask: torch.Tensor
    cache: Any
    cache_name: str
    settings: dict[str, Any]

    def settings_of(self, module: Any) -> dict[str, Any]:
        """Those of the settings that a module's ``forward`` takes."""
        names, takes_all = _parameters(module.forward)
        return {name: value for name, value in self.settings.items() if takes_all or name in names}


def read(model: Any, input_ids: torch.Tensor, inputs: Mapping[str, Any]) -> LoopInputs:
    """Takes what a loop needs from what ``generate`` handed it.

    Args:
        model: a decoder of transformers.
        input_ids: prompts ``[rows, length]``.
        inputs: by name.

    Raises:
        ValueError: for an input that could change what is written and is not dealt with.
    """
    if inputs.get("use_cache") is False:
        raise refused("use_cache=False")
    given = inputs.get("attention_mask")
    mask = torch.ones_like(input_ids) if given is None else given.long()
    cache, cache_name = _cache(model, inputs)
    named, _ = _parameters(model.forward)
    # What `prepare_inputs_for_generation` names and `forward` does not is used up before a pass.
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
    """The error for what is not supported."""
    return ValueError(f"constrained_generate: {what} is not supported; give logits_processor=[…] to generate")


def takes(module: Any, name: str) -> bool:
    """Whether a module's ``forward`` names a parameter."""
    return name in _parameters(module.forward)[0]


def _parameters(function: Callable[..., Any]) -> tuple[set[str], bool]:
    """The parameters that a function names, and whether it takes any others."""
    parameters = inspect.signature(function).parameters.values()
    named = {one.name for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
    return named, any(one.kind is one.VAR_KEYWORD for one in parameters)


def _cache(model: Any, inputs: Mapping[str, Any]) -> tuple[Any, str]:
    """The cache among the inputs, or a new one, and how the model calls it."""
    from transformers import DynamicCache
    from transformers.cache_utils import Cache

    found = {name: value for name, value in inputs.items() if isinstance(value, Cache)}
    if len({id(value) for value in found.values()}) > 1:
        raise refused(f"more than one cache ({', '.join(found)})")
    fresh = DynamicCache(config=model.config)
    cache = next(iter(found.values()), fresh)
    # What the model would make for itself says whether its layers look at all tokens.
    for one in (cache, fresh):
        _check_cache(one)
    if cache.get_seq_length() > 0:
        name = next(iter(found))
        raise ValueError(f"constrained_generate: the cache holds tokens already; leave {name} out")
    named = [name for name in (*found, *_CACHE_NAMES) if takes(model, name)]
    return cache, named[0] if named else next(iter(found), _CACHE_NAMES[0])


def _check_cache(cache: Any) -> None:
    """Refuses a cache whose keys and values cannot be packed: only plain layers hold them whole."""
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
    """Refuses positions that are not those of left-padded prompts: the loop counts on from them."""
    for name, places in (("position_ids", _positions(mask)), ("cache_position", _columns(mask))):
        value = inputs.get(name)
        if value is not None and not _agrees(value, places, mask):
            raise refused(f"{name} ({_described(value)}) other than the prompt's own")


def _positions(mask: torch.Tensor) -> torch.Tensor:
    """Where each token stands in its text, ``[rows, length]``."""
    return mask.cumsum(1) - 1


def _columns(mask: torch.Tensor) -> torch.Tensor:
    """Where each token stands in the batch, ``[length]``."""
    return torch.arange(mask.shape[1], device=mask.device)


def _agrees(value: Any, places: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether a tensor holds these numbers for all tokens that are no padding."""
    if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex():
        return False
    try:
        value = value.to(mask.device).expand_as(mask)
    except RuntimeError:  # of another shape than the prompts
        return False
    return bool(((value == places) | (mask == 0)).all())


def _kind(value: Any, mask: torch.Tensor) -> str:
    """What a value is: ``nothing``, a ``setting``, ``data``, or an ``object`` that cannot be looked into."""
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
    """Whether numbers say no more than the mask does."""
    if not isinstance(value, torch.Tensor):
        return bool(value.size == 0)
    if value.numel() == 0:
        return True
    known = (torch.zeros_like(mask), mask, _positions(mask), _columns(mask))
    return any(_agrees(value, one, mask) for one in known)


def _described(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return type(value).__name__
