"""vLLM under moldrift's logits processor: the texts of drift's own engine, and none illegal, whatever stands beside it in
a batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

moldrift = pytest.importorskip("moldrift")
pytest.importorskip("vllm")
REPOSITORY = Path(__file__).resolve().parents[3]
SMILES = ("CCO", "C#CC1(C#N)CN(C)C1", "C[C@H](N)C=O", "CC(=O)NC")

#: Runs in a process of its own, which vLLM's engine needs. Six requests fit a batch, so that rows come, go and move.
SCRIPT = """
import json, sys
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError

def parameters(job):
    asked = None if job["asked"] is None else {"moldrift": job["asked"]}
    return SamplingParams(
        max_tokens=1500, temperature=job["temperature"], seed=job["seed"], extra_args=asked,
        skip_special_tokens=False, spaces_between_special_tokens=False,
    )

if __name__ == "__main__":
    model, jobs = sys.argv[1], json.loads(sys.argv[2])
    llm = LLM(
        model, dtype="float32", enforce_eager=True, max_model_len=2048, max_num_seqs=6,
        logits_processors=["moldrift.vllm:AutomatonLogitsProcessor"],
    )
    prompts = [f"[SMILES]{job['smiles']}[/SMILES]" for job in jobs]
    answers = llm.generate(prompts, [parameters(job) for job in jobs], use_tqdm=False)
    found = [{"ids": list(one.outputs[0].token_ids), "text": one.outputs[0].text} for one in answers]
    refused = []
    for asked in ({"smiles": "C("}, {"smiles": "C*", "geometry": True}, {"smiles": "C", "bounds": 0.1}, {},
                  {"smiles": "C", "geometry": True, "bounds": 3}, {"smiles": "C", "encoding": "nonsense"},
                  "CCO"):
        try:
            llm.generate("[SMILES]C[/SMILES]", parameters({**jobs[0], "asked": asked}), use_tqdm=False)
            refused.append(None)
        except VLLMValidationError as error:
            refused.append(str(error))
    print(json.dumps({"found": found, "refused": refused}))
"""


def spelled(asked: dict[str, object], seed: int) -> object:
    """What a request asks; in every third as a server's requests have it, as a text."""
    return json.dumps(asked) if seed == 2 else asked


def jobs() -> list[dict[str, object]]:
    """Each molecule free, under the automaton and with geometry, greedy and drawn; and prompts beside another molecule."""
    ways = (None, {}, {"geometry": True}, {"smiles": "FF"})
    return [
        {
            "smiles": smiles,
            "asked": None if way is None else spelled({"smiles": smiles, **way}, seed),
            "temperature": float(seed > 0),
            "seed": seed,
        }
        for smiles in SMILES
        for way in ways
        for seed in range(3)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen-like", "small-bins"])
def test_texts_are_those_of_the_engine(name: str, tmp_path: Path) -> None:
    folder = REPOSITORY / "eval" / name
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(folder), json.dumps(jobs())]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", **os.environ}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    [result] = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"found"')]

    automata = {False: moldrift.Automaton(folder), True: moldrift.GeometryAutomaton(folder)}
    greedy, free = {}, 0
    for job, answer in zip(jobs(), result["found"], strict=True):
        asked, smiles = job["asked"], job["smiles"]
        asked = json.loads(asked) if isinstance(asked, str) else asked
        if asked is None:
            free += not is_legal(automata[False], smiles, answer["ids"])
        elif asked["smiles"] != smiles:
            # Only the prompt shows that it asks for another molecule: that text is empty, and the others go on.
            assert answer["ids"] == [automata[False].eos_token_id]
        else:
            geometry = bool(asked.get("geometry"))
            assert is_legal(automata[geometry], smiles, answer["ids"]), (job, answer["text"])
            if job["temperature"] == 0:
                greedy["geometry" if geometry else "automaton", smiles] = answer["text"]
    # The model alone does worse at times, or the test would show nothing.
    assert free > 0 or name == "small-bins"

    (tmp_path / "smiles").write_text("\n".join(SMILES))
    binary = os.environ.get("DRIFT_BINARY", "drift")
    words = [binary, "generate", "--model", str(folder), "--smiles", str(tmp_path / "smiles"), "-q"]
    words += ["--lp", "automaton,geometry", "--preset", "greedy", "--backtrack", "0"]
    subprocess.run([*words, "-o", str(tmp_path / "texts.jsonl")], check=True)
    lines = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
    assert greedy == {(line["lp"], line["smiles"]): line["text"] for line in lines if "lp" in line}
    assert greedy["geometry", SMILES[2]] != greedy["automaton", SMILES[2]] or name == "small-bins"

    causes = [
        "is not a SMILES",
        "has no known geometry",
        "need geometry",
        'give {"smiles"',
        "is not a share",
        "is neither an encoding nor a file",
        "is no JSON",
    ]
    for error, cause in zip(result["refused"], causes, strict=True):
        assert error is not None and cause in error


def is_legal(automaton: object, smiles: str, ids: list[int]) -> bool:
    """Whether a text is a whole legal one."""
    try:
        automaton.legal(smiles, ids)
    except moldrift.ForbiddenToken:
        return False
    return automaton.constraint(smiles).is_over(ids)
