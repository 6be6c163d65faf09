"""Bad input: each of it is an exception of its own class, in one line that says what to do."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from generation import REPOSITORY, Model, model_folder

import moldrift

load = cache(Model)


def line(error: pytest.ExceptionInfo[Exception]) -> str:
    """The message, which is one line."""
    text = str(error.value)
    assert text
    assert len(text.splitlines()) == 1, text
    assert len(text) < 500, text
    return text


def test_a_tokenizer_that_the_automaton_refuses() -> None:
    with pytest.raises(moldrift.TokenizerRefused) as error:
        moldrift.Automaton(REPOSITORY / "tests/fixtures/tokenizers/unigram-like", eos_token_id=0)
    assert line(error).startswith("unigram-like: the automaton cannot be proved for this tokenizer")
    assert isinstance(error.value, ValueError)
    assert isinstance(error.value, moldrift.DriftError)


@pytest.mark.parametrize("text", ["C(", "", "C1CC", "hello", "[C", "C\nC", "🧪"])
def test_a_smiles_that_is_none(text: str) -> None:
    automaton = moldrift.Automaton("qwen-like")
    for use in (
        automaton.constraint,
        automaton.skeleton,
        automaton.allowed_ids,
        automaton.tables,
        automaton.grammar,
    ):
        with pytest.raises(moldrift.InvalidSmiles) as error:
            use(text)
        assert "SMILES" in line(error)


def test_options_that_do_not_exist(tmp_path: Path) -> None:
    for make, expected in (
        (lambda: moldrift.Automaton("qwen-like", "loose"), "loose"),
        (lambda: moldrift.PositionTemplates("qwen-like", "qwen99"), "qwen99"),
        (lambda: moldrift.PositionTemplates("qwen-like", "generic", placeholder="1,2"), "three numbers"),
        (lambda: moldrift.Automaton("qwen-like").grammar("C", "yacc"), "yacc"),
        (lambda: moldrift.Sampling(temperature=0.0).sampler(), "temperature"),
        (lambda: moldrift.Sampling.preset("hot"), "hot"),
        (lambda: moldrift.Automaton(tmp_path / "none.json"), "none.json"),
        (lambda: moldrift.Automaton(tmp_path), "tokenizer.json"),
        (lambda: moldrift.Automaton("qwen-like", eos_token_id=10**6), "eos_token_id"),
        (lambda: moldrift.Automaton(object()), "tokenizer.json"),
        (lambda: moldrift.Automaton("qwen-like").logits_processor("CO"), "list"),
    ):
        with pytest.raises(moldrift.DriftError) as error:
            make()
        assert expected in line(error)


def test_settings_that_are_not_json(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(
        (REPOSITORY / "tokenizers/qwen-like/tokenizer.json").read_bytes()
    )
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(moldrift.DriftError, match="is not JSON"):
        moldrift.Automaton(tmp_path)
    assert json.loads("{}") == {}


def test_a_prefix_that_is_forbidden() -> None:
    automaton = moldrift.Automaton("qwen-like")
    with pytest.raises(moldrift.ForbiddenToken) as error:
        automaton.allowed_ids("CO", [automaton.allowed_ids("CO")[0], 3])
    assert "token 1 of the prefix is 3" in line(error)


class TestProcessor:
    """What a call of ``generate`` can be given wrong."""

    @pytest.fixture(autouse=True)
    def needs_torch(self) -> None:
        pytest.importorskip("torch")
        pytest.importorskip("transformers")

    @property
    def model(self) -> Model:
        return load("qwen-like")

    def ways(self, lp: Any) -> list[dict[str, Any]]:
        return [
            {"logits_processor": [lp]},
            {"custom_generate": moldrift.constrained_generate, "constraint": lp},
        ]

    @pytest.mark.parametrize("way", [0, 1])
    def test_a_batch_whose_size_does_not_match(self, way: int) -> None:
        automaton = self.model.automaton
        for smiles, prompts in (
            (["CO", "CN"], ["CO", "CN", "CF"]),
            (["CO"], ["CO", "CN"]),
            (["CO", "CN"], ["CO"]),
        ):
            with pytest.raises(ValueError, match="one SMILES for each prompt"):
                self.model.generate(prompts, **self.ways(automaton.logits_processor(smiles))[way])
        with pytest.raises(ValueError, match="no molecule"):
            automaton.logits_processor([])

    @pytest.mark.parametrize("way", [0, 1])
    def test_a_prompt_longer_than_the_context(self, way: int) -> None:
        import torch

        prompts = self.model.prompts(["CO"])
        long = prompts["input_ids"].repeat(1, 2000)[:, :4100]
        assert long.shape[1] == 4100
        lp = self.model.automaton.logits_processor(["CO"])
        with pytest.raises(moldrift.DriftError, match="the model's context 4096"):
            self.model.model.generate(
                long, attention_mask=torch.ones_like(long), max_new_tokens=5, **self.ways(lp)[way]
            )

    @pytest.mark.parametrize("first", [0, 1])
    @pytest.mark.parametrize("second", [0, 1])
    @pytest.mark.parametrize("longer", ["CO", "C" * 60])
    def test_a_processor_used_twice(self, first: int, second: int, longer: str) -> None:
        lp = self.model.automaton.logits_processor(["CO"])
        self.model.generate(["CO"], **self.ways(lp)[first])
        with pytest.raises(moldrift.DriftError, match="used before; make a new one") as error:
            self.model.generate([longer], **self.ways(lp)[second])
        line(error)

    def test_a_token_that_the_mask_forbade(self) -> None:
        from transformers import LogitsProcessor

        class Stubborn(LogitsProcessor):
            """Writes `C`, whatever is legal."""

            def __call__(self, input_ids: Any, scores: Any) -> Any:
                scores[:, 35] = 1e9
                return scores

        lp = self.model.automaton.logits_processor(["CO"])
        with pytest.raises(moldrift.ForbiddenToken) as error:
            self.model.generate(["CO"], logits_processor=[lp, Stubborn()])
        assert "row 0, token 0 behind the prompt: 35" in line(error)
        assert "only 1547 is allowed" in line(error)

    def test_what_constrained_generate_does_not_do(self) -> None:
        make = moldrift.constrained_generate
        for options, expected in (
            ({"num_beams": 2}, "num_beams"),
            ({"cache_implementation": "static"}, "static|Static"),
            ({"use_cache": False}, "use_cache"),
            ({"output_scores": True, "return_dict_in_generate": True}, "output_scores"),
        ):
            lp = self.model.automaton.logits_processor(["CO"])
            with pytest.raises(ValueError, match=expected):
                self.model.generate(["CO"], custom_generate=make, constraint=lp, **options)
        with pytest.raises(ValueError, match="not exactly one"):
            self.model.generate(["CO"], custom_generate=make)

    def test_a_model_without_the_tokens(self) -> None:
        import torch

        lp = self.model.automaton.logits_processor(["CO"])
        with pytest.raises(moldrift.TokenizerRefused, match="tokenizer of the model"):
            lp(torch.zeros((1, 2), dtype=torch.int64), torch.zeros((1, 50)))


def test_the_model_folder_of_the_tests_is_there() -> None:
    assert Path(model_folder("qwen-like")).is_dir()
