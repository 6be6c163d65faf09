"""vLLM on the CPU draws as `moldrift.trl` lets it, one grammar for each prompt; the trainer's probabilities beside its own.

python python/tests/engines/test_policies.py       prints by how much they differ"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("moldrift")
pytest.importorskip("vllm")
REPOSITORY = Path(__file__).resolve().parents[3]
SMILES = ["CO", "CC=O", "c1ccccc1O", "CC(=O)N"]


def drawn() -> tuple[list[list[int]], list[list[int]], list[list[float]]]:
    """Prompts, completions and their log-probabilities from vLLM, four texts of each molecule, asked as TRL asks."""
    from vllm import LLM, SamplingParams

    import moldrift
    from moldrift.vllm_prompts import constrain

    automaton = moldrift.Automaton("eval/qwen-like")
    tokenizer = automaton.source.tokenizer
    llm = LLM(
        "eval/qwen-like", dtype="float32", enforce_eager=True, logprobs_mode="processed_logprobs", seed=1
    )
    generation = SimpleNamespace(llm=llm)
    smiles = [one for one in SMILES for _ in range(4)]
    prompts = [tokenizer.prompt_ids(f"[SMILES]{one}[/SMILES]") for one in smiles]
    grammars = {tuple(prompt): automaton.grammar(one) for prompt, one in zip(prompts, smiles, strict=True)}
    constrain(generation, lambda ids: grammars[tuple(ids)])
    parameters = SamplingParams(n=1, temperature=1.0, top_p=1.0, top_k=0, max_tokens=500, logprobs=0)
    asked = [{"prompt_token_ids": one} for one in prompts]
    answers = generation.llm.generate(asked, sampling_params=parameters, use_tqdm=False)
    texts = [list(one.outputs[0].token_ids) for one in answers]
    log_probs = [
        [step[token].logprob for step, token in zip(one.outputs[0].logprobs, text, strict=True)]
        for one, text in zip(answers, texts, strict=True)
    ]
    return prompts, texts, log_probs


def differences() -> list[float]:
    """ln of the ratio of trainer and rollout at each token that was chosen."""
    import torch
    from transformers import AutoModelForCausalLM

    import moldrift
    from moldrift.torch import masked_log_probs

    prompts, texts, rollouts = drawn()
    automaton = moldrift.Automaton("eval/qwen-like")
    model: Any = AutoModelForCausalLM.from_pretrained("eval/qwen-like", dtype=torch.float32).eval()
    smiles = [one for one in SMILES for _ in range(4)]
    found = []
    for one, prompt, text, rollout in zip(smiles, prompts, texts, rollouts, strict=True):
        legal = automaton.legal([one], [text])
        assert text[-1] == automaton.eos_token_id
        with torch.no_grad():
            hidden = model.model(torch.tensor([prompt + text])).last_hidden_state[:, len(prompt) - 1 : -1]
            trainer = masked_log_probs(hidden, torch.tensor([text]), legal, model.lm_head)[0].tolist()
        found += [a - b for a, b in zip(trainer, rollout, strict=True)]
    return found


def main() -> None:
    found = differences()
    print(
        json.dumps(
            {"tokens": len(found), "most": max(map(abs, found)), "mean": sum(map(abs, found)) / len(found)}
        )
    )


@pytest.mark.slow
def test_the_trainer_has_the_probabilities_of_vllm() -> None:
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ}
    ran = subprocess.run(
        [sys.executable, __file__],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    # vLLM writes to both streams, also when it is over.
    [said] = [text for text in ran.stdout.splitlines() if text.startswith('{"tokens"')]
    found = json.loads(said)
    assert found["tokens"] > 1000
    # Its kernels sum in another order, and its softmax is taken over all tokens with the forbidden ones at -inf.
    assert found["most"] < 1e-3


if __name__ == "__main__":
    main()
