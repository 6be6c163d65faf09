"""Bad input: each of it is an exception of its own class, in one line that says what to do."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
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


ETHANOL = "[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,0.0000>"
RECORD = {"smiles": "CCO", "text": f"[CONFORMER]{ETHANOL}[/CONFORMER]"}


@pytest.mark.parametrize("given", ["<|endoftext|>", 3.7, True, [None], [], object()])
def test_an_end_of_text_that_is_no_id(given: Any) -> None:
    with pytest.raises(moldrift.DriftError, match="eos_token_id: ") as error:
        moldrift.Automaton("qwen-like", eos_token_id=given)
    line(error)


@pytest.mark.parametrize("given", [1542, np.int64(1542), [1542, 1543], np.array([1542, 1543]), (1542,)])
def test_an_end_of_text_in_any_form(given: Any) -> None:
    assert moldrift.Automaton("qwen-like", eos_token_id=given).eos_token_id == 1542


@pytest.mark.parametrize("given", ["2", 1.5, 0, 1001, 2**70, None])
def test_a_number_of_conformers_that_is_none(given: Any) -> None:
    with pytest.raises(moldrift.DriftError, match="conformers: .*give 1 to 1,000") as error:
        moldrift.Automaton("qwen-like", conformers=given)
    line(error)


@pytest.mark.parametrize("ids", ["abc", None, [None], [[1, 2]], [1.0], [True], [-100], [2**40]])
def test_ids_that_are_none(ids: Any) -> None:
    automaton, crystals = (
        moldrift.Automaton("qwen-like"),
        moldrift.SkeletonAutomaton("qwen-like", "crystal-text"),
    )
    for use in (
        lambda: automaton.allowed_ids("CO", ids),
        lambda: automaton.text(ids),
        lambda: crystals.allowed_ids({"formula": "NaCl"}, ids),
        lambda: crystals.text(ids),
    ):
        with pytest.raises(moldrift.DriftError, match=r"row of token ids|is no id") as error:
            use()
        line(error)


@pytest.mark.parametrize("smiles", [None, b"CO", 7, {"smiles": "CO"}, "C\ud800"])
def test_a_smiles_that_is_no_text(smiles: Any) -> None:
    automaton = moldrift.Automaton("qwen-like")
    for use in (automaton.constraint, automaton.skeleton, lambda one: automaton.logits_processor([one])):
        with pytest.raises(moldrift.InvalidSmiles, match="give a SMILES") as error:
            use(smiles)
        line(error)


def test_one_prompt_in_place_of_a_list() -> None:
    crystals = moldrift.SkeletonAutomaton("qwen-like", "crystal-text")
    for given in ({"formula": "NaCl"}, "NaCl", None):
        with pytest.raises(moldrift.DriftError, match="give a list") as error:
            crystals.logits_processor(given)  # type: ignore[arg-type]
        line(error)
    with pytest.raises(moldrift.DriftError, match=r"Sampling\.preset") as error:
        crystals.logits_processor([{"formula": "NaCl"}], sampling="qwen3")  # type: ignore[arg-type]
    line(error)


def test_numpy_in_records_and_what_is_no_json() -> None:
    crystals = moldrift.SkeletonAutomaton("qwen-like", "crystal-text")
    plain = crystals.constraint({"formula": {"Na": 2}}).allowed([])
    assert crystals.constraint({"formula": {"Na": np.int64(2)}}).allowed([]) == plain
    assert moldrift.audit([RECORD | {"n": np.int64(3)}]).total["passed"] == 1
    loop: dict[str, Any] = {"formula": "NaCl"}
    loop["x"] = loop
    for wrong in (loop, {"formula": "NaCl", "x": object()}, {"formula": "NaCl", "x": float("nan")}):
        with pytest.raises(moldrift.DriftError, match="is no JSON") as error:
            crystals.constraint(wrong)
        line(error)
    for made in (None, b"crystal-text", ["crystal-text"]):
        with pytest.raises(moldrift.DriftError, match="skeleton: ") as error:
            moldrift.SkeletonAutomaton("qwen-like", made)  # type: ignore[arg-type]
        line(error)
    with pytest.raises(moldrift.DriftError, match="encoding: ") as error:
        moldrift.Automaton("qwen-like", encoding=3)  # type: ignore[arg-type]
    line(error)


def test_functions_name_the_argument_at_fault() -> None:
    any_of: Any = moldrift
    for make, expected in (
        (lambda: any_of.audit([]), "texts: there is none"),
        (lambda: any_of.audit(None), "texts: None"),
        (lambda: any_of.audit(RECORD["text"]), "smiles="),
        (lambda: any_of.audit([RECORD["text"], RECORD]), "smiles="),
        (lambda: any_of.audit([RECORD], references={"CCO": [ETHANOL]}), "references: "),
        (lambda: any_of.audit([RECORD], references=[ETHANOL]), "moldrift.Judge"),
        (lambda: any_of.audit([{"smiles": "CCO"}]), "the records in memory: contains no text"),
        (lambda: any_of.audit([RECORD], thresholds="x"), "thresholds: 'x'"),
        (lambda: any_of.audit([RECORD], row_field=None), "row_field: "),
        (lambda: any_of.mine(None), "inputs: None"),
        (lambda: any_of.fit(tokenizer="qwen-like", seed=-1), "seed: "),
        (lambda: any_of.fit(tokenizer="qwen-like", weights=(1, 2)), "weights: "),
        (lambda: any_of.inspect(None), "texts: "),
        (lambda: any_of.Judge(max_atoms=-1), "max_atoms: "),
        (lambda: any_of.Judge(at=[1.5]), "at: "),
        (lambda: any_of.Judge(reward="valid"), "reward: "),
        (lambda: any_of.Judge({"CCO": [ETHANOL]}).score("CCO", [None]), "texts: 0"),
        (lambda: any_of.Judge({"CCO": [ETHANOL]}).score("CCO", [ETHANOL + "\ud800"]), "texts: 0"),
        (lambda: any_of.FBeta(beta=float("nan")), "beta: "),
        (lambda: any_of.FBeta(target=1.5), "target: "),
        (lambda: any_of.Sampling(top_k=-1), "top_k: "),
        (lambda: any_of.Sampling(seed="1"), "seed: "),
    ):
        with pytest.raises(moldrift.DriftError) as error:
            make()
        assert expected in line(error)
    assert any_of.Judge(thresholds=0.5).thresholds.tolist() == [0.5]
    assert any_of.Judge().score("CCO", ETHANOL).reward.tolist() == [0.0]
    assert not np.signbit(any_of.Judge().score("CCO", ETHANOL).reward[0])


def test_a_frame_of_pandas_is_a_list_of_records() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([RECORD | {"seconds": 0.5}, RECORD])
    assert moldrift.audit(frame).total["passed"] == 2


def test_numbers_without_end_are_far_away() -> None:
    """Digits to infinity were at no distance from any reference."""
    judge = moldrift.Judge({"CCO": [ETHANOL]}, reward={"hit": 1.0, "coverage": 1.0, "rmsd": 1.0})
    for digits in (6, 40, 160, 400):
        scores = judge.score("CCO", ETHANOL.replace("1.1700", "9" * digits + ".0000"))
        assert scores.rmsd_to_nearest[0] > 1e4
        assert np.isfinite(scores.bond_error).all()
        assert scores.reward.tolist() == [0.0]
        assert not scores.valid[0]
    for far in (1e5, 1e300, np.inf, np.nan):
        with pytest.raises(moldrift.DriftError, match="no number up to 99999.9999") as error:
            moldrift.Judge({"CCO": np.array([[0.0, 0.0, 0.0], [far, 0.0, 0.0], [2.0, 0.0, 0.0]])})
        line(error)


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
