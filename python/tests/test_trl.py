"""`moldrift.trl`: TRL's GRPOTrainer under a mask, with TRL itself; vLLM by objects in its place. Skipped without TRL."""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import json
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generation import REPOSITORY, model_folder
from test_bad_input import line

import moldrift

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
from moldrift import trl as constrained  # noqa: E402

SMILES = ["CO", "CCO", "CN", "CC=O"]
QWEN = "qwen-like"


@cache
def automaton() -> moldrift.Automaton:
    return moldrift.Automaton(model_folder(QWEN))


class Judge:
    """Stands in for `moldrift.Judge`: a text passes if its skeleton is right; half are valid, by the sum of their bytes."""

    def __init__(self, references: dict[str, Any], encoding: str = "fixed", thresholds: Any = None) -> None:
        self.references, self.asked = references, 0

    def score(self, smiles: list[str], texts: list[str]) -> Any:
        from generation import moldrift_skeleton

        self.asked += len(texts)
        passed = [
            moldrift_skeleton(text) == moldrift.Automaton.skeleton(automaton(), one)
            if "[/" in text
            else False
            for one, text in zip(smiles, texts, strict=True)
        ]
        valid = [sum(map(ord, text)) % 2 == 0 for text in texts]
        rmsd = [np.array([0.5, np.nan]) if one else np.array([np.nan]) for one in passed]
        return types.SimpleNamespace(
            passed=np.array(passed),
            valid=np.array(valid),
            rmsd=rmsd,
            why=["" if one else "graph" for one in passed],
        )


def dataset() -> Any:
    from datasets import Dataset

    return Dataset.from_dict({"prompt": [f"[SMILES]{one}[/SMILES]" for one in SMILES]})


def settings(folder: Path, **options: Any) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        **{
            "output_dir": str(folder),
            "per_device_train_batch_size": 8,
            "num_generations": 4,
            "max_completion_length": 120,
            "max_steps": 2,
            "learning_rate": 1e-4,
            "top_k": 0,
            "use_cpu": True,
            "bf16": False,
            "report_to": [],
            "save_strategy": "no",
            "logging_steps": 1,
            "disable_tqdm": True,
            **options,
        }
    )


def made(
    folder: Path, reward: Any = None, kind: Any = None, config: dict[str, Any] | None = None, **named: Any
) -> Any:
    """A trainer of the small checkpoint."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    path = model_folder(QWEN)
    model = named.pop("model", None)
    if model is None:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    return (kind or constrained.ConstrainedGRPOTrainer)(
        model,
        reward or (lambda completion_ids, **_: [float(len(one)) for one in completion_ids]),
        settings(folder, **(config or {})),
        train_dataset=dataset(),
        **{
            "automaton": automaton(),
            "processing_class": AutoTokenizer.from_pretrained(path, padding_side="left"),
            **named,
        },
    )


def test_prompts_may_share_a_token_with_the_answer(tmp_path: Path) -> None:
    """A prompt's ids end before that token, also where log-probabilities are computed."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder = REPOSITORY / "tests/fixtures/tokenizers/llama-2-like-untagged"
    tokenizer_folder = tmp_path / "tokenizer"
    tokenizer_folder.mkdir()
    (tokenizer_folder / "tokenizer.json").write_bytes(
        gzip.decompress((folder / "tokenizer.json.gz").read_bytes())
    )
    (tokenizer_folder / "tokenizer_config.json").write_bytes((folder / "tokenizer_config.json").read_bytes())
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder, padding_side="left")
    tokenizer.pad_token = tokenizer.eos_token
    own = moldrift.Automaton(tokenizer_folder, eos_token_id=tokenizer.eos_token_id)
    torch.manual_seed(1)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    ends = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=1, **shape, **ends))
    trainer = made(tmp_path, model=model, automaton=own, processing_class=tokenizer)
    found = trainer._generate_and_score_completions([{"prompt": f"[SMILES]{SMILES[0]}[/SMILES]"}] * 4)
    prompt = own.source.tokenizer.prompt_ids(f"[SMILES]{SMILES[0]}[/SMILES]")
    assert prompt != tokenizer(f"[SMILES]{SMILES[0]}[/SMILES]")["input_ids"]
    for ids, mask in zip(found["prompt_ids"], found["prompt_mask"], strict=True):
        assert ids[mask.bool()].tolist() == prompt
    for ids, mask in zip(found["completion_ids"], found["completion_mask"], strict=True):
        written = ids[mask.bool()].tolist()
        assert all(one in own.allowed_ids(SMILES[0], written[:at]) for at, one in enumerate(written[:20]))
    both = [torch.cat([found[f"prompt_{name}"], found[f"completion_{name}"]], 1) for name in ("ids", "mask")]
    with torch.no_grad():
        log_probs, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, *both, found["completion_ids"].shape[1]
        )
    assert torch.isfinite(log_probs[found["completion_mask"].bool()]).all()


@pytest.mark.parametrize("rollout", ["constrained_generate", "generate"])
def test_rollouts_are_legal_and_the_trainer_has_their_probabilities(tmp_path: Path, rollout: str) -> None:
    trainer = made(tmp_path, rollout=rollout, config={"temperature": 0.9})
    inputs = [{"prompt": f"[SMILES]{one}[/SMILES]"} for one in SMILES for _ in range(4)]
    trainer.model.train()
    torch.manual_seed(4)
    found = trainer._generate_and_score_completions(inputs)
    ids = torch.cat([found["prompt_ids"], found["completion_ids"]], 1)
    mask = torch.cat([found["prompt_mask"], found["completion_mask"]], 1)
    length = found["completion_ids"].shape[1]
    with torch.no_grad():
        log_probs, entropies, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids, mask, length, batch_size=3, compute_entropy=True
        )
        logits = trainer.model(input_ids=ids, attention_mask=mask).logits[:, -length - 1 : -1] / 0.9
    for row, smiles in enumerate(one for one in SMILES for _ in range(4)):
        text = found["completion_ids"][row][found["completion_mask"][row].bool()].tolist()
        assert automaton().constraint(smiles).is_over(text)
        for at, token in enumerate(text):
            legal = automaton().allowed_ids(smiles, text[:at])
            expected = logits[row, at, legal].log_softmax(0)
            assert abs(float(log_probs[row, at] - expected[legal.index(token)])) < 1e-5
            assert abs(float(entropies[row, at] + (expected.exp() * expected).sum())) < 1e-5
        assert not log_probs[row, len(text) :].any()


def test_a_run_trains(tmp_path: Path) -> None:
    """With old and reference log-probabilities and several updates of a batch; the reward hears the texts with their tags."""
    judge = Judge({})
    seen: list[Any] = []

    def reward(**named: Any) -> list[float]:
        seen.append(named["completion_ids"])
        return constrained.judge_reward(judge, automaton())(**named)

    config = {"beta": 0.04, "num_iterations": 2, "max_steps": 4}
    trainer = made(tmp_path, reward, config=config)
    before = {name: one.clone() for name, one in trainer.model.named_parameters()}
    trainer.train()
    assert judge.asked == 16
    log = [one for one in trainer.state.log_history if "reward" in one]
    assert all(0 < one["reward"] <= 2 for one in log)
    assert any(not torch.equal(one, before[name]) for name, one in trainer.model.named_parameters())
    assert all(np.isfinite(one.get("loss", 0.0)) for one in trainer.state.log_history)
    # The first update of a batch is on the policy, the second no longer.
    kl = [one["kl"] for one in trainer.state.log_history if "kl" in one]
    assert abs(kl[0]) < 1e-9 < kl[1]


def test_the_gradient_is_that_of_the_masked_log_probabilities(tmp_path: Path) -> None:
    trainer = made(tmp_path, config={"loss_type": "grpo"})
    smiles = ["CO", "CC=O"]
    texts = ["[CONFORMER][C]<0.5000,-1.2500,3.0000>[O]<1.0000,2.0000,-3.0000>[/CONFORMER]"]
    texts.append(texts[0].replace("[O]", "[C]<-0.1000,0.2000,0.0001>=[O]"))
    tokenizer, eos = automaton().source.tokenizer, automaton().eos_token_id
    answers = [[*tokenizer.answer_ids(one), eos] for one in texts]
    prompts = [tokenizer.prompt_ids(f"[SMILES]{one}[/SMILES]") for one in smiles]
    width, longest = max(map(len, prompts)), max(map(len, answers))
    inputs = {
        "prompt_ids": torch.tensor([[eos] * (width - len(one)) + one for one in prompts]),
        "prompt_mask": torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts]),
        "completion_ids": torch.tensor([one + [eos] * (longest - len(one)) for one in answers]),
        "completion_mask": torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in answers]),
        "advantages": torch.tensor([0.7, -1.1]),
        "num_items_in_batch": torch.tensor(sum(map(len, answers))),
    }
    trainer.current_gradient_accumulation_steps = 1
    trainer._compute_loss(trainer.model, inputs).backward()
    found = trainer.model.lm_head.weight.grad.clone()
    trainer.model.zero_grad()

    model, loss = trainer.model, torch.zeros(())
    for prompt, answer, one, advantage in zip(prompts, answers, smiles, [0.7, -1.1], strict=True):
        logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        for at, token in enumerate(answer):
            legal = automaton().allowed_ids(one, answer[:at])
            log_p = logits[at, legal].log_softmax(0)[legal.index(token)]
            loss = loss - (log_p - log_p.detach()).exp() * advantage / len(answer) / 2
    loss.backward()
    assert float(found.abs().max()) > 1e-4
    assert torch.allclose(found, model.lm_head.weight.grad, atol=1e-6)


def test_models_whose_logits_are_no_plain_product(tmp_path: Path) -> None:
    """Gemma 2 caps its logits: these are taken as the model makes them."""
    import transformers

    config = transformers.Gemma2Config(
        vocab_size=1549,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        final_logit_softcapping=0.5,
        eos_token_id=automaton().eos_token_id,
        pad_token_id=automaton().eos_token_id,
    )
    torch.manual_seed(0)
    trainer = made(tmp_path, model=transformers.AutoModelForCausalLM.from_config(config), rollout="generate")
    trainer.train()
    ids = [*automaton().source.tokenizer.prompt_ids("[SMILES]CO[/SMILES]")]
    answer = automaton().source.tokenizer.answer_ids("[CONFORMER][C]<0.5000,-1.2500,3.")
    whole = torch.tensor([ids + answer])
    with torch.no_grad():
        log_probs = trainer._get_per_token_logps_and_entropies(
            trainer.model, whole, torch.ones_like(whole), len(answer)
        )[0]
        logits = trainer.model(whole).logits[0, len(ids) - 1 : -1]
    legal = automaton().allowed_ids("CO", answer[:-2])
    assert abs(float(log_probs[0, -2] - logits[-2, legal].log_softmax(0)[legal.index(answer[-2])])) < 1e-5


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> type:
    """Objects in place of vLLM's, as far as it is called."""

    class StructuredOutputsParams:
        def __init__(self, grammar: str) -> None:
            self.grammar = grammar

    package, module = types.ModuleType("vllm"), types.ModuleType("vllm.sampling_params")
    module.StructuredOutputsParams = StructuredOutputsParams
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", module)
    return StructuredOutputsParams


def test_vllm_gets_a_grammar_for_each_prompt(vllm: type) -> None:
    asked: list[Any] = []

    class Engine:
        name = "engine"

        def generate(self, prompts: Any, sampling_params: Any, use_tqdm: bool) -> Any:
            asked.append((prompts, sampling_params, use_tqdm))
            return "answers"

    def grammar_of(prompt_ids: Any) -> str:
        return automaton().grammar(constrained.smiles_of_prompt(automaton().text(prompt_ids)))

    generation = types.SimpleNamespace(llm=Engine(), mode="colocate")
    constrained.constrain(generation, grammar_of)
    assert generation.llm.name == "engine"
    tokenizer = automaton().source.tokenizer
    prompts = [{"prompt_token_ids": tokenizer.prompt_ids(f"[SMILES]{one}[/SMILES]")} for one in SMILES]
    one = types.SimpleNamespace(temperature=1.0, structured_outputs=None)
    assert generation.llm.generate(prompts, sampling_params=one, use_tqdm=False) == "answers"
    [(same, parameters, bar)] = asked
    assert (same, bar, one.structured_outputs) == (prompts, False, None)
    assert [each.structured_outputs.grammar for each in parameters] == [
        automaton().grammar(one) for one in SMILES
    ]
    assert {each.temperature for each in parameters} == {1.0}


def test_a_server_of_vllm_gets_a_request_for_each_prompt() -> None:
    class Client:
        def generate(self, prompts: Any, n: int, generation_kwargs: Any, **others: Any) -> Any:
            grammar = generation_kwargs["structured_outputs"]["grammar"]
            return {
                "prompt_ids": prompts,
                "completion_ids": [[prompts[0][0], at] for at in range(n)],
                "logprobs": [[[len(grammar)]]] * n,
                "logprob_token_ids": None,
            }

    generation = types.SimpleNamespace(vllm_client=Client(), mode="server")
    constrained.constrain(generation, lambda ids: "x" * ids[0])
    found = generation.vllm_client.generate([[5], [7]], n=2, generation_kwargs=None, temperature=1.0)
    assert found == {
        "prompt_ids": [[5], [7]],
        "completion_ids": [[5, 0], [5, 1], [7, 0], [7, 1]],
        "logprobs": [[[5]], [[5]], [[7]], [[7]]],
        "logprob_token_ids": None,
    }


def test_rewards_of_a_judge() -> None:
    class Fixed:
        def score(self, smiles: list[str], texts: list[str]) -> Any:
            assert smiles == ["C", "CO", "CO"]
            assert texts == ["[CONFORMER]", "", "[C]"]
            return types.SimpleNamespace(
                passed=[True, False, True],
                valid=[True, True, False],
                rmsd=[np.array([np.nan, 1.5, 0.75]), np.array([0.1]), np.array([np.nan])],
            )

    tokenizer, eos = automaton().source.tokenizer, automaton().eos_token_id
    named = {
        "prompts": ["[SMILES]C[/SMILES]", "[SMILES]CO[/SMILES]", "[SMILES]C[/SMILES]…\n[SMILES]CO[/SMILES]"],
        "completions": ["", "", ""],
        "completion_ids": [[*tokenizer.answer_ids("[CONFORMER]"), eos], [eos], tokenizer.answer_ids("[C]")],
        "trainer_state": None,
    }
    reward = constrained.judge_reward(Fixed(), automaton())
    assert reward(**named) == pytest.approx([1 + np.exp(-1), 0, 0])
    own = constrained.judge_reward(Fixed(), automaton(), reward=lambda scores: scores.valid)
    assert own(**named) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("end", ["<|endoftext|>", "[/CONFORMER]"])
def test_the_tag_that_ends_a_text_is_a_part_of_it(end: str) -> None:
    ethanol = "[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,0.0000>"
    tokenizer = automaton().source.tokenizer
    eos = tokenizer.id_of(end)
    ended = moldrift.Automaton(QWEN, eos_token_id=[eos, tokenizer.id_of("<|endoftext|>")])
    answer = tokenizer.answer_ids(f"[CONFORMER]{ethanol}[/CONFORMER]")
    if answer[-1] != eos:
        answer.append(eos)
    reward = constrained.judge_reward(moldrift.Judge({"CCO": [ethanol]}), ended)
    completions = [answer, [*answer, eos, eos], answer[:-2]]
    found = reward(prompts=["[SMILES]CCO[/SMILES]"] * 3, completion_ids=completions)
    assert found == pytest.approx([2.0, 2.0, 0.0])


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(moldrift.DriftError, match="smiles_of=") as error:
        constrained.smiles_of_prompt("CCO")
    line(error)
    for options, expected in (
        ({"rollout": "beam"}, "constrained_generate or generate"),
        ({"rollout_func": print}, "does not take rollout_func"),
        ({"tools": [print]}, "does not take tools"),
        ({"automaton": moldrift.Automaton(QWEN, eos_token_id=3)}, "eos_token_id"),
    ):
        with pytest.raises(ValueError, match=expected) as error:
            made(tmp_path, **options)
        line(error)
    with pytest.warns(UserWarning, match="top_p cut the rollout's distribution"):
        trainer = made(tmp_path, config={"top_p": 0.9})
    with pytest.raises(ValueError, match="a conversational prompt"):
        trainer._rollout([[{"role": "user", "content": "C"}]], trainer)
    # Another tokenizer's ids in a batch.
    ids = torch.tensor([automaton().source.tokenizer.prompt_ids("[SMILES]CO[/SMILES]") + [3, 3]])
    with pytest.raises(moldrift.ForbiddenToken, match="completion 0, token 0 behind the prompt: 3"):
        trainer._get_per_token_logps_and_entropies(trainer.model, ids, torch.ones_like(ids), 2)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.29.0", "does not work with TRL 0.29.0"),
        ("2.0.0", "does not work with TRL 2.0.0"),
        (None, "is not installed"),
    ],
)
def test_other_versions_of_trl(monkeypatch: pytest.MonkeyPatch, version: str | None, expected: str) -> None:
    from importlib import metadata

    def found(name: str) -> str:
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", found)
    with pytest.raises(ImportError, match=expected) as error:
        constrained._checked_version()
    assert f'pip install "trl>={constrained.OLDEST},<{constrained.TOO_NEW}"' in line(error)


def test_a_trl_with_another_method(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constrained.GRPOTrainer, constrained._METHOD, lambda self, model: None)
    with pytest.raises(ImportError, match="gets log-probabilities another way"):
        made(tmp_path)


@pytest.mark.slow
def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a reader starts it, with a stand-in where there is no `moldrift.Judge` yet."""
    if not hasattr(moldrift, "Judge"):
        monkeypatch.setattr(moldrift, "Judge", Judge, raising=False)
    path = REPOSITORY / "python/examples/grpo.py"
    spec = importlib.util.spec_from_file_location("grpo_example", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.set_num_threads(1)
    arguments = ["--model", model_folder(QWEN), "--references", str(REPOSITORY / "corpora/default.jsonl.gz")]
    arguments += ["--molecules", "4", "--steps", "2", "--generations", "4", "--max-tokens", "200", "--cpu"]
    trainer = example.main([*arguments, "-o", str(tmp_path)])
    assert trainer.state.global_step == 2
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "qwen3"
    assert (tmp_path / "model.safetensors").is_file()
