"""Decoding that reads forced tokens together, so that the model makes one pass for each token that it chooses.

For ``model.generate(**inputs, custom_generate=moldrift.constrained_generate, constraint=lp)`` of
transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import moldrift.loop_inputs as loop_inputs
from moldrift.errors import DriftError
from moldrift.logits_processor import ConstraintLogitsProcessor
from moldrift.loop_inputs import LoopInputs, refused

#: Processors that only look at scores, not at token ids. They can run on the legal scores alone.
_WARPERS = frozenset(
    {
        "EpsilonLogitsWarper",
        "EtaLogitsWarper",
        "InfNanRemoveLogitsProcessor",
        "LogitNormalization",
        "MinPLogitsWarper",
        "TemperatureLogitsWarper",
        "TopHLogitsWarper",
        "TopKLogitsWarper",
        "TopPLogitsWarper",
        "TypicalLogitsWarper",
    }
)

#: Models whose logits are just the product of the last hidden state and the head.
_PLAIN_HEADS = frozenset({"llama", "mistral", "qwen2", "qwen3"})

#: Processors that assume one token per call. They miscount if forced tokens are read together.
_COUNTING = frozenset(
    {
        "ClassifierFreeGuidanceLogitsProcessor",
        "SynthIDTextWatermarkLogitsProcessor",
        "UnbatchedClassifierFreeGuidanceLogitsProcessor",
    }
)

#: Generation modes that choose from the logits of one pass. Assisted decoding writes the same texts.
_MODES = frozenset({"assisted_generation", "greedy_search", "sample"})

#: The KV cache is packed if it is wider than its longest row by this factor, or if more than this share of its rows
#: is finished.
_WIDEST, _MOST_OVER = 1.25, 0.25


@torch.inference_mode()
def constrained_generate(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: Any = None,
    stopping_criteria: Any = None,
    generation_config: Any = None,
    constraint: ConstraintLogitsProcessor | None = None,
    legal_head: bool | None = None,
    **model_kwargs: Any,
) -> Any:
    """Generates under a constraint. Each chosen token and the forced tokens after it are fed in one pass.

    Greedy decoding writes the same texts as ``generate`` with the same processor. With ``do_sample=True`` torch
    draws the tokens from the legal logits, after temperature, top-k, top-p and similar warpers. A processor with
    ``sampling`` draws them with keyed noise; they are then the same in any batch. Processors that look at token ids
    (repetition penalties) work, but need all logits.

    Args:
        model: a decoder of transformers with a dynamic cache and full attention.
        input_ids: prompts ``[rows, length]``, left-padded.
        logits_processor: the processors that ``generate`` made from its options.
        stopping_criteria: the criteria that ``generate`` made; they are asked at each token, for each row alone. A text
            is cut where one is met, also among forced tokens.
        generation_config: the configuration that ``generate`` made.
        constraint: from ``automaton.logits_processor(smiles)``, for this call only. Afterwards
            ``constraint.forward_passes`` is the number of passes of the model.
        legal_head: whether to multiply only the rows of the head that are legal somewhere in the batch. By default
            only on the CPU, for architectures whose head is a plain product.
        model_kwargs: the other inputs that ``generate`` passes to a loop. `moldrift.loop_inputs` describes how they
            are handled.

    Returns:
        ``[rows, length + longest text]`` with the end of text and padding after each text; with
        ``return_dict_in_generate`` the output object of ``generate``, without scores.

    Raises:
        ValueError: for options that are not supported (beams, a static cache, sliding windows, scores, inputs that
            could change the text), or a batch that does not match the molecules.
        DriftError: if the constraint was used before, or a prompt is longer than the context.
    """
    lp = _constraint_of(constraint, logits_processor)
    processors = [one for one in logits_processor or () if not isinstance(one, ConstraintLogitsProcessor)]
    _check(model, generation_config, processors)
    inputs = loop_inputs.read(model, input_ids, model_kwargs)
    loop = _Loop(model, input_ids, lp, processors, generation_config, legal_head, inputs)
    loop.criteria, ends = _criteria_of(stopping_criteria)
    lp.rows.end_behind(sorted(ends - {lp.source.eos}))
    texts = loop.run()
    return _result(input_ids, texts, generation_config, lp.source.eos)


def _constraint_of(constraint: Any, processors: Any) -> ConstraintLogitsProcessor:
    """The constraint that was given, or the one among the processors."""
    listed = [one for one in processors or () if isinstance(one, ConstraintLogitsProcessor)]
    found = constraint if constraint is not None else listed[0] if len(listed) == 1 else None
    if not isinstance(found, ConstraintLogitsProcessor) or any(one is not found for one in listed):
        raise ValueError(
            "constraint: there is not exactly one; give constraint=automaton.logits_processor(smiles)"
        )
    return found


def _check(model: Any, config: Any, processors: list[Any]) -> None:
    """Refuses options that the loop does not support."""
    wrong = {
        "num_beams": (getattr(config, "num_beams", 1) or 1) > 1,
        "output_scores": config.output_scores,
        "output_logits": config.output_logits,
        "output_attentions": config.output_attentions,
        "output_hidden_states": config.output_hidden_states,
        "an encoder and a decoder": model.config.is_encoder_decoder,
    }
    mode = str(getattr(config.get_generation_mode(), "value", "sample"))
    wrong[f"the generation mode {mode}"] = mode not in _MODES
    wrong.update({type(one).__name__: type(one).__name__ in _COUNTING for one in processors})
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise refused(name)


def _criteria_of(criteria: Any) -> tuple[list[Any], set[int]]:
    """The stopping criteria except for length and end of text, which the loop handles itself; and the ids that end a text
    for ``generate``."""
    others, ends = [], set()
    for one in criteria or ():
        if type(one).__name__ == "EosTokenCriteria":
            ends.update(one.eos_token_id.tolist())
        elif type(one).__name__ != "MaxLengthCriteria":
            others.append(one)
    return others, ends


class _Loop:
    """The rows that the model still computes, and their KV cache."""

    def __init__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        lp: ConstraintLogitsProcessor,
        processors: list[Any],
        config: Any,
        legal_head: bool | None,
        inputs: LoopInputs,
    ) -> None:
        self.model, self.lp, self.rows = model, lp, lp.rows
        self.device = input_ids.device
        self.prompts = input_ids
        self.prompt_mask = inputs.mask
        _check_context(model, self.prompt_mask)
        lp.begin(input_ids)
        self.most = config.max_length - input_ids.shape[1]
        self.warpers = [one for one in processors if type(one).__name__ in _WARPERS]
        self.others = [one for one in processors if type(one).__name__ not in _WARPERS]
        self.do_sample = bool(config.do_sample)
        self.cache = inputs.cache
        self.mask = self.prompt_mask[:, :0]
        self.positions = torch.zeros(len(input_ids), dtype=torch.int64, device=self.device)
        self.kept: Any = slice(None)
        self.head = _legal_head(model, legal_head, bool(self.others) or self.rows.wants_argmax)
        self.vocabulary = model.get_output_embeddings().weight.shape[0]
        read_by = model if self.head is None else model.base_model
        self.constant = {
            **inputs.settings_of(read_by),
            inputs.cache_name: self.cache,
            "use_cache": True,
            "return_dict": True,
        }
        # If the model can, it only computes the logits of the last token.
        if loop_inputs.takes(read_by, "logits_to_keep"):
            self.constant["logits_to_keep"] = 1
        self.criteria: list[Any] = []

    def run(self) -> list[list[int]]:
        """Decodes until all texts are finished, and returns them."""
        chunk, mask = self._behind_prompts(*self._advance(None))
        while True:
            self._drop_finished()
            if not len(self.rows.active()):
                break
            if chunk.shape[0] != len(self.mask):
                chunk, mask = chunk[self.kept], mask[self.kept]
            tokens = self._choose(self._read(chunk, mask))
            chunk, mask = self._chunk(*self._advance(tokens))
        return [self.rows.text(row) for row in range(len(self.prompts))]

    def _advance(self, tokens: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Takes the chosen tokens and those that are forced after them; returns what the model has not read, as
        `Rows.advance`."""
        if not self.criteria:
            return self.rows.advance(tokens, self.most)
        known = {int(row): len(self.rows.text(row)) for row in self.rows.active()}
        found = self.rows.advance(tokens, self.most)
        for row, length in known.items():
            self._stop_where_asked(row, length)
        return found

    def _behind_prompts(self, chunk: np.ndarray, counts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """The prompts with the forced tokens after them, without padding between."""
        chunk, mask = self._chunk(chunk, counts)
        tokens, mask = torch.cat([self.prompts, chunk], 1), torch.cat([self.prompt_mask, mask], 1)
        return _packed(mask, tokens)

    def _chunk(self, chunk: np.ndarray, counts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """The tokens that the model has to read, and their mask (0 for padding), both ``[active, longest]``."""
        tokens = torch.from_numpy(chunk).to(self.device)
        counts = torch.from_numpy(counts).to(self.device)
        places = torch.arange(tokens.shape[1], 0, -1, device=self.device)
        return tokens, (places[None, :] <= counts[:, None]).long()

    def _read(self, chunk: torch.Tensor, mask: torch.Tensor) -> Any:
        """Makes one pass, and returns the hidden states or logits at the last token, ``[active, …]``."""
        self.mask = torch.cat([self.mask, mask], 1)
        positions = (self.positions[:, None] + mask.cumsum(1) - 1).clamp(min=0)
        self.positions = self.positions + mask.sum(1)
        inputs = {
            "input_ids": chunk,
            "attention_mask": self.mask,
            "position_ids": positions,
            **self.constant,
        }
        self.lp.forward_passes += 1
        if self.head is not None:
            return self.model.base_model(**inputs).last_hidden_state[:, -1]
        return self.model(**inputs).logits[:, -1].float()

    def _choose(self, states: torch.Tensor) -> np.ndarray:
        """Chooses a token for each active row, ``[active]``."""
        ids = None
        if self.head is not None:
            ids, logits, places = self.head.logits(states, self.rows, self.vocabulary)
        else:
            logits = self._processed(states)
            places = None
        if self.rows.wants_argmax:
            self.rows.observe(logits.argmax(-1).cpu().numpy())
        if self.lp.sampling is None and self.do_sample:
            return self._sample(logits, ids)
        if places is None:
            places, listing, _ = self.rows.places(logits.shape[1])
        else:
            listing = None
        kept = logits.reshape(-1)[torch.from_numpy(places).to(self.device)].float().cpu().numpy()
        return self.rows.draws(self.vocabulary, kept, self._unlisted(logits, listing))

    def _unlisted(self, logits: torch.Tensor, listing: np.ndarray | None) -> np.ndarray | None:
        """All logits of the rows that do not list their legal tokens."""
        if listing is None:
            return None
        others = np.setdiff1d(np.arange(len(logits)), listing)
        return logits[torch.from_numpy(others).to(self.device)].cpu().numpy()

    def _processed(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits after the processors that look at token ids. These get the texts left-padded."""
        if not self.others:
            return logits
        texts = [self.rows.text(row) for row in range(len(self.prompts))]
        longest = max(map(len, texts))
        padded = [[self.lp.source.eos] * (longest - len(text)) + text for text in texts]
        written = torch.tensor(padded, dtype=torch.int64, device=self.device).reshape(len(texts), longest)
        ids = torch.cat([self.prompts, written], 1)
        # Some processors keep a state for each row of the batch, so they also get the finished rows.
        active = torch.from_numpy(self.rows.active()).to(self.device)
        whole = logits.new_zeros(len(texts), logits.shape[1]).index_copy_(0, active, logits)
        for processor in self.others:
            whole = processor(ids, whole)
        # They may have forbidden all legal tokens. As in `masked`, the best of these is written then.
        return whole[active].clamp(min=torch.finfo(whole.dtype).min / 16)

    def _sample(self, logits: torch.Tensor, union: torch.Tensor | None) -> np.ndarray:
        """Draws with torch from the legal logits, after temperature and the other warpers."""
        listed = self.rows.listed(self.vocabulary)
        if listed is None:
            scores, ids = self._blocked(logits), None
        else:
            ids, counts = (torch.from_numpy(one).to(self.device) for one in listed)
            columns = ids if union is None else torch.searchsorted(union, ids)
            places = torch.arange(ids.shape[1], device=self.device)
            scores = logits.float().gather(1, columns)
            scores = scores.masked_fill(places[None, :] >= counts[:, None], float("-inf"))
        for warper in self.warpers:
            scores = warper(None, scores)
        drawn = torch.multinomial(scores.softmax(-1), 1)
        return (drawn if ids is None else ids.gather(1, drawn)).squeeze(1).cpu().numpy()

    def _blocked(self, logits: torch.Tensor) -> torch.Tensor:
        """All logits with -inf for forbidden tokens, for constraints that do not list the legal tokens."""
        return self.lp.masked(logits.contiguous())

    def _stop_where_asked(self, row: int, known: int) -> None:
        """Cuts a row's text behind the first token after ``known`` at which a criterion is met."""
        text = self.rows.text(row)
        for length in range(known + 1, len(text) + 1):
            if self._is_met(row, text[:length]):
                self.rows.stop(row, length)
                return

    def _is_met(self, row: int, text: list[int]) -> bool:
        """Whether a stopping criterion is met behind these tokens."""
        written = torch.tensor([text], dtype=torch.int64, device=self.device)
        ids = torch.cat([self.prompts[row : row + 1], written], 1)
        return any(bool(criterion(ids, None).any()) for criterion in self.criteria)

    def _drop_finished(self) -> None:
        """Packs the KV cache if it has too many holes, or too many of its rows are finished."""
        over = self.rows.over()[self.rows.active()]
        width = self.mask.shape[1]
        longest = int(self.positions.max()) if width else 0
        all_over, many_over = over.all(), over.mean() > _MOST_OVER
        if not (all_over or many_over or width > _WIDEST * longest + 16):
            self.kept = slice(None)
            return
        self.kept = torch.from_numpy(self.rows.drop_over()).to(self.device)
        self.mask, self.positions = self.mask[self.kept], self.positions[self.kept]
        if all_over or not width:
            return
        order = _order(self.mask)
        self.mask = self.mask.gather(1, order)
        for layer in self.cache.layers:
            index = order[:, None, :, None].expand(-1, layer.keys.shape[1], -1, layer.keys.shape[3])
            layer.keys = layer.keys[self.kept].gather(2, index)
            layer.values = layer.values[self.kept].gather(2, index)


class _Head:
    """A model's head, of which only the rows that are legal somewhere in the batch are computed."""

    def __init__(self, head: torch.nn.Linear) -> None:
        self.weight, self.bias = head.weight, head.bias

    def logits(self, states: torch.Tensor, rows: Any, vocabulary: int) -> tuple[Any, torch.Tensor, Any]:
        """The ids, sorted ``[union]``, their logits ``[active, union]``, and the places of each row's legal tokens.
        If a row does not list its legal tokens, all logits, without ids and places."""
        union = rows.union(vocabulary)
        if union is None:
            return None, torch.nn.functional.linear(states, self.weight, self.bias).float(), None
        ids = torch.from_numpy(union[0]).to(states.device)
        bias = None if self.bias is None else self.bias[ids]
        return ids, torch.nn.functional.linear(states, self.weight[ids], bias).float(), union[1]


def _legal_head(model: Any, wanted: bool | None, needs_all: bool) -> _Head | None:
    """The head by rows, if this is wanted and possible."""
    head = model.get_output_embeddings()
    plain = type(head) is torch.nn.Linear and model.config.model_type in _PLAIN_HEADS and not needs_all
    if wanted and not plain:
        raise ValueError("legal_head: this model or its processors need all logits; leave it out")
    wanted = plain and head.weight.device.type == "cpu" if wanted is None else wanted
    return _Head(head) if wanted else None


def _check_context(model: Any, mask: torch.Tensor) -> None:
    """Refuses prompts that fill the model's context."""
    context = getattr(model.config, "max_position_embeddings", None)
    longest = int(mask.sum(1).max())
    if context is not None and longest >= context:
        raise DriftError(
            f"prompt: takes {longest} tokens, the model's context {context}; leave this molecule out"
        )


def _order(mask: torch.Tensor) -> torch.Tensor:
    """The columns of each row's tokens, with padding before them, in as many columns as the longest row has."""
    longest = max(int(mask.sum(1).max()), 1)
    return mask.argsort(dim=1, stable=True)[:, mask.shape[1] - longest :]


def _packed(mask: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens without holes, padded on the left, and their mask."""
    order = _order(mask)
    return tokens.gather(1, order), mask.gather(1, order)


def _result(prompts: torch.Tensor, texts: list[list[int]], config: Any, eos: int) -> Any:
    """The return value of ``generate``."""
    pad = config.pad_token_id if config.pad_token_id is not None else eos
    longest = max(map(len, texts))
    padded = [text + [pad] * (longest - len(text)) for text in texts]
    written = torch.tensor(padded, dtype=prompts.dtype, device=prompts.device).reshape(len(texts), longest)
    sequences = torch.cat([prompts, written], 1)
    if not config.return_dict_in_generate:
        return sequences
    from transformers.generation import GenerateDecoderOnlyOutput

    return GenerateDecoderOnlyOutput(sequences=sequences)
