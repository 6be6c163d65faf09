"""Decoding that reads forced tokens together, beside ``generate`` with the processor."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from generation import MODELS, Model, batches, molecules  # noqa: E402

import moldrift  # noqa: E402

load = cache(Model)
Way = dict[str, Any]

#: Molecules that are written both ways: fewer unless CI runs everything.
ALL = bool(os.environ.get("DRIFT_ALL"))
COUNT = 64 if ALL else 12

#: Tokens of texts whose end does not matter: some blocks.
MOST = 1000 if ALL else 120


def constrained(lp: Any, **options: Any) -> Way:
    """The options of a call."""
    return {"custom_generate": moldrift.constrained_generate, "constraint": lp, **options}


@cache
def both_ways(name: str) -> tuple[list[list[int]], list[list[int]], tuple[int, int]]:
    """Greedy texts of molecules at batch 32: by generate, by constrained_generate, and both numbers of passes.
    In 64 bits, as below: in 32 two logits that differ by 6e-6 came out equal on one processor."""
    model, theirs, ours, passes = Model(name), [], [], [0, 0]
    model.model.double()
    for _, part in batches(molecules(COUNT), 32):
        lp = model.automaton.logits_processor(part)
        theirs += model.generate(part, logits_processor=[lp])
        passes[0] += lp.forward_passes
        lp = model.automaton.logits_processor(part)
        ours += model.generate(part, **constrained(lp))
        passes[1] += lp.forward_passes
    return theirs, ours, (passes[0], passes[1])


@pytest.mark.parametrize("name", MODELS)
def test_greedy_texts_are_those_of_generate(name: str) -> None:
    theirs, ours, _ = both_ways(name)
    assert ours == theirs
    assert len(ours) == COUNT


@pytest.mark.parametrize("name", MODELS)
def test_a_fifth_of_the_passes_is_spared(name: str) -> None:
    _, _, (theirs, ours) = both_ways(name)
    assert ours <= 0.8 * theirs, (ours, theirs)


@cache
def in_double(size: int, legal_head: bool) -> list[list[int]]:
    """Greedy texts of some molecules in batches of so many, in 64 bits: in 32 the last bits of a product depend on
    the size of the batch, and with them which of two logits is greater that differ by 1e-6."""
    model, found = Model("llama-like"), []
    model.model.double()
    for _, part in batches(molecules(64)[16 : 32 if ALL else 24], size):
        lp = model.automaton.logits_processor(part)
        found += model.generate(part, **constrained(lp, legal_head=legal_head))
    return found


def test_any_batch_and_any_head_write_the_same() -> None:
    texts = in_double(5, False)
    assert in_double(5, True) == texts
    assert in_double(16, True) == texts


@pytest.mark.parametrize("name", MODELS)
def test_keyed_samples_are_those_of_generate_in_any_batch(name: str) -> None:
    model, smiles = load(name), molecules(64)[: 32 if ALL else COUNT]
    sampling = moldrift.Sampling.preset("top-p-0.8-t1.2", seed=2)

    def lp(part: Any, first: int = 0) -> Any:
        return model.automaton.logits_processor(part, sampling=sampling, first_prompt=first)

    together = model.generate(smiles, **constrained(lp(smiles)))
    assert together == model.generate(smiles, logits_processor=[lp(smiles)])
    alone = [model.generate([one], **constrained(lp([one], at)))[0] for at, one in enumerate(smiles[:3])]
    assert alone == together[:3]
    for one, ids in zip(smiles, together, strict=True):
        model.check(one, ids)


def test_sampling_by_torch_is_legal_and_repeatable() -> None:
    model, smiles = load("qwen-like"), molecules(3)

    def sampled(**options: Any) -> list[list[int]]:
        torch.manual_seed(3)
        lp = model.automaton.logits_processor(smiles)
        return model.generate(smiles, **constrained(lp), do_sample=True, num_return_sequences=2, **options)

    warped = {
        "temperature": 1.3,
        "top_k": 8,
        "top_p": 0.9,
        "min_p": 0.05,
        "typical_p": 0.95,
        "epsilon_cutoff": 0.01,
    }
    found = sampled(**warped)
    assert found == sampled(**warped) != sampled(temperature=1.3, top_k=8)
    for at, ids in enumerate(found):
        model.check(smiles[at // 2], ids)


def test_processors_of_token_ids_see_all_logits() -> None:
    model, smiles = load("qwen-like"), molecules(3)

    def greedy(**options: Any) -> list[list[int]]:
        lp = model.automaton.logits_processor(smiles)
        way = {"logits_processor": [lp]} if options.pop("plain", False) else constrained(lp)
        return model.generate(smiles, **way, **options, max_new_tokens=MOST)

    assert greedy(repetition_penalty=1.3, plain=True) == greedy(repetition_penalty=1.3) != greedy()


def test_position_templates_work_too() -> None:
    model, smiles = load("qwen-like"), molecules(3)
    for kind, dialect in (("generic", "fixed"), ("truncating", "stripped"), ("allowlist", "fixed")):
        templates = moldrift.PositionTemplates(model.tokenizer, kind, dialect=dialect)
        most = {"max_new_tokens": MOST}
        plain = model.generate(smiles, logits_processor=[templates.logits_processor(smiles)], **most)
        assert plain == model.generate(smiles, **constrained(templates.logits_processor(smiles)), **most), (
            kind
        )


def test_texts_end_where_the_room_ends() -> None:
    model, smiles = load("qwen-like"), molecules(5)
    for most in (1, 3, 4, 37):
        plain = model.generate(
            smiles, logits_processor=[model.automaton.logits_processor(smiles)], max_new_tokens=most
        )
        way = constrained(model.automaton.logits_processor(smiles), max_new_tokens=most)
        assert plain == model.generate(smiles, **way)


@pytest.mark.parametrize("ending", [">", "[", "]<"])
def test_stopping_criteria_are_asked_at_each_token(ending: str) -> None:
    """A text is cut where one is met: behind a chosen token, and among those that are forced."""
    model, smiles = load("qwen-like"), molecules(3)

    class Third(transformers.StoppingCriteria):
        """Ends a text where the ending stands for the third time behind its prompt."""

        def __call__(self, input_ids: Any, scores: Any, **options: Any) -> Any:
            texts = (text.split("[/SMILES]")[1] for text in model.tokenizer.batch_decode(input_ids))
            return torch.tensor([text.count(ending) >= 3 for text in texts])

    plain, ours = both_stopped(model, smiles, stopping_criteria=[Third()])
    assert ours == plain
    full = both_ways("qwen-like")[1]
    assert all(len(ids) < len(whole) for ids, whole in zip(ours, full, strict=False))


def test_ends_that_are_not_the_automatons_end_texts() -> None:
    model, smiles = load("qwen-like"), molecules(3)
    for end in ("[/CONFORMER]", ",", "."):
        [*_, token] = model.automaton.source.tokenizer.answer_ids(end)
        plain, ours = both_stopped(model, smiles, eos_token_id=[model.automaton.eos_token_id, token])
        assert ours == plain
        assert all(ids[-1] == token for ids in ours), end


def both_stopped(model: Any, smiles: Any, **options: Any) -> tuple[list[list[int]], list[list[int]]]:
    """Texts by generate and by constrained_generate, without the padding behind them."""
    pad = model.automaton.eos_token_id
    options |= {"pad_token_id": pad, "max_new_tokens": 400}
    plain = model.generate(smiles, logits_processor=[model.automaton.logits_processor(smiles)], **options)
    ours = model.generate(smiles, **constrained(model.automaton.logits_processor(smiles), **options))
    return tuple([ids[:-1] if ids[-1] == pad else ids for ids in texts] for texts in (plain, ours))


def test_generate_returns_what_it_is_asked_for() -> None:
    model, smiles = load("qwen-like"), molecules(3)
    prompts = model.prompts(smiles)
    lp = model.automaton.logits_processor(smiles)
    way = constrained(lp, return_dict_in_generate=True, do_sample=False, max_new_tokens=1000)
    out = model.model.generate(**prompts, **way)
    length = prompts["input_ids"].shape[1]
    assert torch.equal(out.sequences[:, :length], prompts["input_ids"])
    texts = [model.cut(row) for row in out.sequences[:, length:].tolist()]
    assert texts == both_ways("qwen-like")[1][:3]
