"""GRPO with masks: TRL's trainer with a mask for each prompt in the rollout, and the same mask in the loss.

`ConstrainedGRPOTrainer` is TRL's ``GRPOTrainer`` with an automaton. It changes TRL in three places:

- Rollouts by transformers go through ``rollout_func``, TRL's hook for rollouts, with `moldrift.constrained_generate` or
  a logits processor.
- Rollouts by vLLM are TRL's own, but the engine (or the client of a server) gets one grammar for each prompt. TRL itself
  passes one ``SamplingParams`` for all prompts.
- For log-probabilities TRL has no hook. All of them (policy, old policy, reference) come from
  `_get_per_token_logps_and_entropies`. This method is overridden and uses `moldrift.torch.masked_log_probs`. Its
  parameters are checked when a trainer is made.

Everything else is TRL's: advantages, clipping, KL, schedules, logging, checkpoints.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import types
import warnings
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import torch

from moldrift.automaton import Automaton
from moldrift.errors import DriftError
from moldrift.generate import _PLAIN_HEADS, constrained_generate
from moldrift.torch import PolicyTerms, masked_log_probs
from moldrift.vllm_prompts import constrain

__all__ = ["OLDEST", "TOO_NEW", "ConstrainedGRPOTrainer", "judge_reward", "smiles_of_prompt"]

#: Versions of TRL that work: from the first one on, and before the second. The first and 1.16.0 are tested.
OLDEST, TOO_NEW = "1.8.0", "2"


def _checked_version() -> str:
    """The installed version of TRL.

    Raises:
        ImportError: if TRL is not installed, or its version does not work.
    """
    remedy = f'pip install "trl>={OLDEST},<{TOO_NEW}"'
    try:
        found = metadata.version("trl")
    except metadata.PackageNotFoundError:
        raise ImportError(f"moldrift.trl: TRL is not installed; {remedy}") from None
    numbers = [tuple(int(one) for one in re.findall(r"\d+", text)[:2]) for text in (found, OLDEST, TOO_NEW)]
    if not numbers[1] <= numbers[0] < numbers[2]:
        raise ImportError(f"moldrift.trl: does not work with TRL {found}; {remedy}")
    return found


VERSION = _checked_version()

from trl import GRPOTrainer  # noqa: E402
from trl.models import unwrap_model_for_generation  # noqa: E402

#: Parameters that `_get_per_token_logps_and_entropies` must have.
_WANTED = ("batch_size", "compute_aux_loss")
_METHOD = "_get_per_token_logps_and_entropies"

#: Options of TRL's sampling, with the values that do not change the distribution. With other values, tokens are drawn
#: from another policy than the one whose log-probabilities are computed.
_CUTS = {
    "top_p": (1.0, None),
    "top_k": (0, -1, None),
    "min_p": (0.0, None),
    "repetition_penalty": (1.0, None),
}

_SMILES = re.compile(r"\[SMILES\](.*?)\[/SMILES\]", re.DOTALL)


def smiles_of_prompt(prompt: str) -> str:
    """The SMILES of a prompt, between the last pair of tags, since worked examples may come before it.

    >>> smiles_of_prompt("[SMILES]C[/SMILES][CONFORMER]…[/CONFORMER]\\n[SMILES]CO[/SMILES]")
    'CO'

    Raises:
        DriftError: if there are no tags.
    """
    found = _SMILES.findall(prompt)
    if not found:
        raise DriftError(
            f"prompt: {prompt[:80]!r} has no [SMILES]…[/SMILES]; give smiles_of=, which finds the SMILES of your prompts"
        )
    return str(found[-1])


class ConstrainedGRPOTrainer(GRPOTrainer):
    """TRL's ``GRPOTrainer`` for a policy that only writes legal texts.

    Prompts are texts. Every rollout of a prompt follows the automaton of its molecule. Every log-probability (of the
    policy, the old policy and the reference) is computed under the constrained policy, so the ratio of rollout and
    trainer is 1 before the first update. Forced tokens have log-probability 0. They still count in TRL's mean over
    tokens, which scales the loss of a text.

    Not supported, with an error: tools, environments, images, conversational prompts, a rollout function of your own,
    auxiliary losses of mixtures of experts, continuous batching, adapters on the head, FSDP and ZeRO 3, TRL's fused loss
    (``use_liger_kernel``), another temperature in ``generation_kwargs``, vLLM with a tokenizer of which a token crosses the
    end of the prompt, and ``generate`` or vLLM for several conformers that each end with the end of text. Not tested: more
    than one process.

    Args:
        model, reward_funcs, args, …: as for ``GRPOTrainer``. Rewards should read ``completion_ids``, as `judge_reward`
            does: the texts that TRL passes to them have lost their special tokens.
        automaton: the automaton for the model's tokenizer and encoding.
        smiles_of: a function that finds the SMILES of a prompt; by default `smiles_of_prompt`.
        rollout: ``constrained_generate`` (fewer passes), or ``generate`` with a logits processor. If
            ``args.use_vllm`` is set, vLLM writes the rollouts instead.
        grammar: the format that vLLM's backend reads, ``lark`` or ``ebnf``; vLLM's default backend reads both.

    Raises:
        ValueError: for options that are not supported.
        ImportError: if TRL's method for log-probabilities is not as expected.
    """

    _tag_names = ["trl", "grpo", "moldrift"]

    def __init__(
        self,
        model: Any,
        reward_funcs: Any,
        args: Any = None,
        *others: Any,
        automaton: Automaton,
        smiles_of: Callable[[str], str] = smiles_of_prompt,
        rollout: str = "constrained_generate",
        grammar: str = "lark",
        **named: Any,
    ) -> None:
        if rollout not in ("constrained_generate", "generate"):
            raise ValueError(f"rollout: there is no {rollout!r}; give constrained_generate or generate")
        for name in ("rollout_func", "tools", "environment_factory"):
            if named.get(name) is not None:
                raise _refused(name)
        if others and len(others) > 8:
            raise ValueError("ConstrainedGRPOTrainer: give options behind args by name")
        ends_early = rollout == "generate" or getattr(args, "use_vllm", False)
        if ends_early and automaton.ends_with_tag and automaton.conformers > 1:
            raise ValueError(
                "automaton: generate and vLLM end a text at its first [/CONFORMER]; give constrained_generate, or one conformer"
            )
        _check_method()
        # The molecules of prompts whose ids lack a part of the last tag.
        self._smiles_by_ids: dict[tuple[int, ...], str] = {}
        self.automaton, self.smiles_of, self._rollout_by, self._grammar = (
            automaton,
            smiles_of,
            rollout,
            grammar,
        )
        if not getattr(args, "use_vllm", False):
            named["rollout_func"] = self._rollout
        with warnings.catch_warnings():
            # All accepted versions have it.
            warnings.filterwarnings("ignore", message=".*rollout_func.*experimental")
            super().__init__(model, reward_funcs, args, *others, **named)
        self._check_settings()
        for one in (self.model, self.ref_model):
            if one is not None:
                _add_masked_head(one)
        if self.use_vllm:
            constrain(self.vllm_generation, self._grammar_of)

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Saves the model, and beside it what says how it writes numbers."""
        super().save_model(output_dir, _internal_call)
        if self.args.should_save:
            self.automaton.source.keep_beside(output_dir or self.args.output_dir)

    def _check_settings(self) -> None:
        """Refuses settings that are not supported, and warns of settings that make the policies differ."""
        for name in (
            "is_fsdp_enabled",
            "use_transformers_continuous_batching",
            "aux_loss_enabled",
            "_is_vlm",
        ):
            if getattr(self, name, False):
                raise _refused(name.strip("_"))
        plugin = getattr(self.accelerator.state, "deepspeed_plugin", None)
        if plugin is not None and plugin.zero_stage == 3:
            raise _refused("DeepSpeed ZeRO 3")
        settings = self.model.generation_config.eos_token_id
        ends = {self.processing_class.eos_token_id, *(settings if isinstance(settings, list) else [settings])}
        if self.automaton.eos_token_id not in ends:
            raise ValueError(
                f"automaton: ends texts with {self.automaton.eos_token_id}, tokenizer and model with "
                f"{sorted(ends - {None})}; give Automaton(…, eos_token_id=…)"
            )
        if getattr(self, "liger_loss", None) is not None:
            # TRL's fused loss of 1.8 has a softmax of its own over the whole vocabulary.
            raise _refused("use_liger_kernel")
        # These take precedence over the settings of the same names.
        last = getattr(self.args, "generation_kwargs", None) or {}
        if last.get("temperature", self.temperature) != self.temperature:
            raise _refused("another temperature in generation_kwargs")
        given = {name: last.get(name, getattr(self.args, name, None)) for name in _CUTS}
        cut = [name for name, plain in _CUTS.items() if given[name] not in plain]
        if cut:
            warnings.warn(
                f"ConstrainedGRPOTrainer: {', '.join(cut)} cut the rollout's distribution, and log-probabilities "
                "are of the uncut one; leave that out for exact ratios",
                stacklevel=3,
            )

    def _grammar_of(self, prompt_ids: Sequence[int]) -> str:
        """The grammar for a prompt."""
        text = self.automaton.text(prompt_ids)
        if self.automaton.prompt_ids_apart(text) is not None:
            raise _refused("vLLM with a tokenizer of which a token crosses the end of the prompt")
        smiles = self.smiles_of(text)
        self.automaton.check_prompt(prompt_ids, smiles)
        return self.automaton.grammar(smiles, self._grammar)

    def _rollout(self, prompts: list[Any], _trainer: Any) -> dict[str, Any]:
        """TRL's ``rollout_func``: one completion for each prompt, by transformers."""
        if not all(isinstance(one, str) for one in prompts):
            raise _refused("a conversational prompt")
        smiles = [self.smiles_of(one) for one in prompts]
        alone = self.processing_class(text=prompts)["input_ids"]
        # A token may cross the end of a prompt; the answer begins with it.
        prompt_ids = [
            own if ids is None else ids
            for own, ids in zip(alone, map(self.automaton.prompt_ids_apart, prompts), strict=True)
        ]
        for own, ids, one in zip(alone, prompt_ids, smiles, strict=True):
            if ids is not own:
                self._smiles_by_ids[tuple(ids)] = one
        batch = self.processing_class.pad({"input_ids": prompt_ids}, padding_side="left", return_tensors="pt")
        batch = {name: batch[name].to(self.accelerator.device) for name in ("input_ids", "attention_mask")}
        constraint = self.automaton.logits_processor(smiles)
        how = {"custom_generate": constrained_generate, "constraint": constraint}
        if self._rollout_by == "generate":
            how = {"logits_processor": [constraint]}
        unwrapped = unwrap_model_for_generation(
            self.model_wrapped,
            self.accelerator,
            gather_deepspeed3_params=self.args.ds3_gather_for_generation,
            generation_kwargs=self.generation_kwargs,
        )
        with unwrapped as model, torch.no_grad():
            ids = model.generate(**batch, generation_config=self.generation_config, **how)
        written = ids[:, batch["input_ids"].shape[1] :].tolist()
        return {
            "prompt_ids": prompt_ids,
            "completion_ids": [self._cut(row) for row in written],
            "logprobs": None,
        }

    def _cut(self, row: list[int]) -> list[int]:
        """A completion without the padding after its end."""
        return row[: self.automaton.end_of(row)]

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **others: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, None]:
        """Log-probabilities and entropies under the constrained policy, ``[batch, logits_to_keep]``."""
        asked = [name for name, value in others.items() if value is not None]
        if asked or compute_aux_loss:
            raise _refused(", ".join(asked) or "compute_aux_loss")
        size = batch_size or len(input_ids)
        found = []
        for start in range(0, len(input_ids), size):
            ids, mask = input_ids[start : start + size], attention_mask[start : start + size]
            scored = self._scorer(ids, mask, logits_to_keep, compute_entropy)
            with self.accelerator.autocast():
                found.append(model(input_ids=ids, attention_mask=mask, masked_head=scored))
        log_probs = torch.cat([one[0] for one in found])
        return log_probs, torch.cat([one[1] for one in found]) if compute_entropy else None, None

    def _smiles(self, prompt_ids: list[int]) -> str:
        """The molecule of a prompt."""
        known = self._smiles_by_ids.get(tuple(prompt_ids))
        return self.smiles_of(self.automaton.text(prompt_ids)) if known is None else known

    def _scorer(
        self, ids: torch.Tensor, mask: torch.Tensor, kept: int, entropy: bool
    ) -> Callable[..., tuple[torch.Tensor, ...]]:
        """A function of hidden states (or logits) and the head that returns log-probabilities and, if wanted, entropies."""
        rows, masks = ids.tolist(), mask.bool().tolist()
        prompts = [_kept(row[:-kept], one[:-kept]) for row, one in zip(rows, masks, strict=True)]
        written = [_kept(row[-kept:], one[-kept:]) for row, one in zip(rows, masks, strict=True)]
        legal = self.automaton.legal([self._smiles(one) for one in prompts], written)

        def scored(states: torch.Tensor, head: Any) -> tuple[torch.Tensor, ...]:
            states = states[:, -kept - 1 : -1]
            terms = masked_log_probs(
                states, ids[:, -kept:], legal, head, temperature=self.temperature, entropy=entropy
            )
            return (terms.log_probs, terms.entropy) if isinstance(terms, PolicyTerms) else (terms,)

        return scored


def _refused(what: str) -> ValueError:
    return ValueError(
        f"ConstrainedGRPOTrainer: does not take {what}; leave it out, or use TRL's GRPOTrainer without a mask"
    )


def _check_method() -> None:
    """Refuses a TRL with another method for log-probabilities.

    Raises:
        ImportError: if the method does not exist, or lacks parameters.
    """
    method = getattr(GRPOTrainer, _METHOD, None)
    known = () if method is None else inspect.signature(method).parameters
    if not all(name in known for name in _WANTED):
        raise ImportError(
            f'moldrift.trl: TRL {VERSION} gets log-probabilities another way; pip install "trl>={OLDEST},<{TOO_NEW}"'
        )


def _kept(row: list[int], mask: list[bool]) -> list[int]:
    return [one for one, is_kept in zip(row, mask, strict=True) if is_kept]


def _add_masked_head(model: Any) -> None:
    """Adds a parameter ``masked_head`` to a model's forward. If it is given, forward returns
    ``masked_head(last hidden states, head)``.

    The call goes through the model and its wrappers, as with TRL's own fused head. If a model's logits are not the plain
    product of hidden states and head, it calls ``masked_head(logits, None)``.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    head = base.get_output_embeddings()
    is_plain = base.config.model_type in _PLAIN_HEADS
    if is_plain and type(head) is not torch.nn.Linear:
        raise _refused(f"a head that is a {type(head).__name__} (an adapter on it)")
    original = base.forward

    @functools.wraps(type(base).forward)  # generate reads the signature
    def forward(self: Any, *args: Any, masked_head: Any = None, **named: Any) -> Any:
        if masked_head is None:
            return original(*args, **named)
        if is_plain:
            states = self.base_model(*args, use_cache=False, **named).last_hidden_state
            return masked_head(states, self.get_output_embeddings())
        return masked_head(original(*args, use_cache=False, **named).logits, None)

    base.forward = types.MethodType(forward, base)


def judge_reward(
    judge: Any,
    automaton: Automaton,
    *,
    near: float = 0.75,
    reward: Callable[[Any], Sequence[float]] | None = None,
    smiles_of: Callable[[str], str] = smiles_of_prompt,
) -> Callable[..., list[float]]:
    """A reward function for TRL from a judge with references, such as ``moldrift.Judge``.

    The reward of a text that does not pass is 0. Otherwise it has two parts: 1 if the chemistry is valid, else 0; and
    ``exp(-d / near)``, where d is the RMSD to the nearest reference in Å, or 0 without a distance. The largest reward
    is 2.

    Args:
        judge: an object whose ``score(smiles, texts)``, with one SMILES per text, returns ``passed`` and ``valid`` (bool
            ``[texts]``) and ``rmsd``: for each text the distances to the references of its molecule, NaN if unknown.
        automaton: turns ids into texts with their special tokens.
        near: the distance in Å at which the second part is 1/e.
        reward: another reward: a function of the scores that returns a number for each text.
        smiles_of: a function that finds the SMILES of a prompt.
    """

    if not 0 < near < math.inf:
        raise ValueError(f"near: {near!r} is no length above 0; give one in Å")

    def judged(prompts: list[str], completion_ids: list[list[int]], **_others: Any) -> list[float]:
        texts = [automaton.text(_without_end(ids, automaton)) for ids in completion_ids]
        scores = judge.score([smiles_of(one) for one in prompts], texts)
        found = _valid_and_near(scores, near) if reward is None else reward(scores)
        return [float(one) for one in found]

    judged.__name__ = "judge"
    return judged


def _without_end(ids: Sequence[int], automaton: Automaton) -> list[int]:
    """The ids before the end of text, and the end itself if it is the tag that closes a conformer."""
    kept = list(ids[: automaton.end_of(ids)])
    has_end = bool(kept) and kept[-1] == automaton.eos_token_id
    return kept[:-1] if has_end and not automaton.ends_with_tag else kept


def _valid_and_near(scores: Any, near: float) -> list[float]:
    """The reward of `judge_reward`."""
    found = []
    for passed, valid, distances in zip(scores.passed, scores.valid, scores.rmsd, strict=True):
        known = np.asarray(distances, dtype=float)
        known = known[np.isfinite(known)]
        closeness = float(np.exp(-known.min() / near)) if len(known) else 0.0
        found.append((float(bool(valid)) + closeness) if passed else 0.0)
    return found
