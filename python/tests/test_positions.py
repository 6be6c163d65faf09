"""Position templates, and the modules with the users' names."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from generation import Model, model_folder, molecules  # noqa: E402

import moldrift  # noqa: E402
from moldrift import position_templates, qwen_logit_processor  # noqa: E402

load = cache(Model)


def allowed(templates: moldrift.PositionTemplates, smiles: str, ids: list[int]) -> tuple[str, set[int]]:
    kind, found = templates.constraint(smiles).allowed(ids)
    return kind, set(found)


def test_the_variants_block_what_they_say() -> None:
    model = load("qwen-like")
    vocabulary = model.tokenizer.get_vocab()

    def holding(characters: str) -> set[int]:
        return {one for token, one in vocabulary.items() if any(c in token for c in characters)}

    tags = {vocabulary[tag] for tag in ("[CONFORMER]", "[/CONFORMER]", "[SMILES]", "[/SMILES]")}
    for kind, characters in (("generic", "<>"), ("qwen39", "<>"), ("targeted", "<>[]@+")):
        templates = moldrift.PositionTemplates(model.tokenizer, kind)
        start = templates.constraint("CO").forced_run([])
        way, blocked = allowed(templates, "CO", start)
        assert way == "except"
        assert holding(characters) | tags | {model.automaton.eos_token_id} <= blocked
        assert vocabulary["1"] not in blocked
    templates = moldrift.PositionTemplates(model.tokenizer, "allowlist")
    way, legal = allowed(templates, "CO", start)
    assert way == "only"
    assert {vocabulary[c] for c in "0123456789-."} <= legal
    assert vocabulary[","] not in legal


def test_a_template_leaves_as_many_tokens_as_its_placeholder_takes() -> None:
    model, smiles = load("qwen-like"), molecules(4)
    for placeholder in ("0.000,0.000,0.000", "-0.0000,0.0000,0.0000"):
        templates = moldrift.PositionTemplates(model.tokenizer, "allowlist", placeholder=placeholder)
        found = model.generate(smiles, logits_processor=[templates.logits_processor(smiles)])
        for one, ids in zip(smiles, found, strict=True):
            text = (
                "[CONFORMER]"
                + model.automaton.skeleton(one).replace("<>", f"<{placeholder}>")
                + "[/CONFORMER]"
            )
            assert len(ids) == len(model.tokenizer(text, add_special_tokens=False)["input_ids"]) + 1


@pytest.mark.parametrize("module", [qwen_logit_processor, position_templates])
@pytest.mark.parametrize("name", ["qwen-like", "llama-like"])
def test_the_users_script_runs_with_one_changed_import(module: Any, name: str) -> None:
    """What 3DMolGen's ``process_batch`` does, step by step."""
    model, smiles = load(name), molecules(6)
    with ThreadPoolExecutor(4) as pool:
        work = [(one, model.tokenizer) for one in smiles]
        build = module.build_precomputed_template
        templates = list(pool.map(lambda args: build(*args, use_tokenizer_cache=True), work))
    prompts = model.prompts(smiles)
    lengths = prompts["attention_mask"].sum(1).tolist()
    eos = model.automaton.eos_token_id
    found = []
    for ends in (eos, [eos, 1]):
        lp = module.QwenAllowlistLogitsProcessor(
            templates, lengths, tokenizer=model.tokenizer, eos_token_id=ends
        )
        with torch.inference_mode():
            found.append(model.generate(smiles, logits_processor=[lp]))
        templates = module.build_templates_for_batch(smiles, model.tokenizer, use_tokenizer_cache=True)
    assert found[0] == found[1]
    assert all(ids[-1] == eos for ids in found[0])
    if module is qwen_logit_processor:
        lp = model.automaton.logits_processor(smiles)
        assert found[0] == model.generate(smiles, logits_processor=[lp])
    assert isinstance(lp, object)
    assert "moldrift" in module.QwenAllowlistLogitsProcessor.VERSION


@pytest.mark.parametrize("module", [qwen_logit_processor, position_templates])
def test_signatures_are_the_users(module: Any) -> None:
    def names(function: Any, kind: Any) -> list[str]:
        return [one.name for one in inspect.signature(function).parameters.values() if one.kind is kind]

    one, many, processor = (
        module.build_precomputed_template,
        module.build_templates_for_batch,
        module.QwenAllowlistLogitsProcessor.__init__,
    )
    plain, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    assert names(one, plain) == ["smiles", "tokenizer"]
    assert names(one, keyword)[:2] == ["include_tags", "use_tokenizer_cache"]
    assert names(many, plain) == ["smiles_list", "tokenizer"]
    assert "use_tokenizer_cache" in names(many, keyword)
    assert names(processor, plain) == ["self", "templates", "prompt_lengths"]
    assert names(processor, keyword) == ["tokenizer", "eos_token_id"]


def test_the_dialect_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = load("qwen-like").tokenizer
    build = qwen_logit_processor.build_precomputed_template
    assert build("CO", tokenizer).molecules.dialect == "fixed"
    assert build("CO", tokenizer, dialect="stripped").molecules.dialect == "stripped"
    folder = model_folder("qwen-like")
    assert build("CO", folder).molecules is build("CN", folder).molecules
    monkeypatch.setenv("MOLDRIFT_DIALECT", "stripped")
    assert build("CO", tokenizer).molecules is build("CO", tokenizer, dialect="stripped").molecules
    monkeypatch.setenv("MOLDRIFT_ENCODING", "binned-v2:-13,13,0.104")
    assert build("CO", tokenizer).molecules.dialect == "binned-v2:-13,13,0.104"


@pytest.mark.parametrize("module", [qwen_logit_processor, position_templates])
def test_drop_ins_refuse_what_the_users_code_refuses(module: Any) -> None:
    tokenizer = load("qwen-like").tokenizer
    with pytest.raises(ValueError, match="SMILES"):
        module.build_precomputed_template("C(", tokenizer)
    templates = module.build_templates_for_batch(["CO", "CN"], tokenizer)
    with pytest.raises(ValueError, match="2 templates for 1 prompts"):
        module.QwenAllowlistLogitsProcessor(templates, [3], tokenizer=tokenizer, eos_token_id=0)
    with pytest.raises(ValueError, match="include_tags"):
        module.build_precomputed_template("CO", tokenizer, include_tags=False)


@pytest.mark.parametrize("module", [qwen_logit_processor, position_templates])
def test_drop_ins_refuse_templates_of_other_molecules(module: Any) -> None:
    model = load("qwen-like")
    templates = module.build_templates_for_batch(["CO", "CN"], model.tokenizer)
    for asked, is_right in [(["OC", "CN"], True), (["CN", "CO"], False)]:
        lp = module.QwenAllowlistLogitsProcessor(templates, [9, 9], tokenizer=model.tokenizer)
        prompts = model.prompts(asked)["input_ids"]
        if is_right:
            lp.begin(prompts)
            continue
        with pytest.raises(moldrift.DriftError, match="asks for CN, and the processor was given"):
            lp.begin(prompts)
