"""vLLM under skeletons: by moldrift's logits processor and by exported grammars every text is one of its skeleton, in the
tokens that the tokenizer makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

moldrift = pytest.importorskip("moldrift")
pytest.importorskip("vllm")
REPOSITORY = Path(__file__).resolve().parents[3]
MODEL = REPOSITORY / "eval/qwen-like"
SALT, ETHANOL = {"formula": "NaCl"}, {"smiles": "CCO"}
#: The model knows none of these texts but the last one.
ASKED = (
    ("crystal-text", {"formula": "Na2Cl2"}),
    ("cif-p1", SALT),
    ("xyz", ETHANOL),
    ("smiles-then-xyz", ETHANOL),
    ("3dsmiles-plain", ETHANOL),
    ("enriched-smiles", {"smiles": "CC(=O)NC"}),
)
SEEDS = 3

#: Runs in a process of its own, which vLLM's engine needs. Six requests fit a batch, so that rows come, go and move.
SCRIPT = """
import json, sys
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

def parameters(job):
    asked, grammar = job["asked"], job["grammar"]
    return SamplingParams(
        max_tokens=job["tokens"], temperature=float(job["seed"] > 0), seed=job["seed"],
        extra_args=None if asked is None else {"moldrift": asked},
        structured_outputs=None if grammar is None else StructuredOutputsParams(grammar=grammar),
        skip_special_tokens=False, spaces_between_special_tokens=False,
    )

if __name__ == "__main__":
    jobs = json.load(open(sys.argv[2]))
    llm = LLM(
        sys.argv[1], dtype="float32", enforce_eager=True, max_model_len=2048, max_num_seqs=6,
        logits_processors=["moldrift.vllm:AutomatonLogitsProcessor"],
        structured_outputs_config={"backend": "guidance"},
    )
    prompts = [{"prompt_token_ids": job["prompt_ids"]} for job in jobs]
    answers = llm.generate(prompts, [parameters(job) for job in jobs], use_tqdm=False)
    print(json.dumps([list(one.outputs[0].token_ids) for one in answers]))
"""


@dataclass
class Job:
    """A request: its skeleton, and what holds it, if anything does."""

    name: str
    prompt_ids: list[int]
    seed: int
    asked: dict[str, Any] | None = None
    grammar: str | None = None
    tokens: int = 1500

    @property
    def way(self) -> str:
        """What holds it."""
        return "processor" if self.asked else "grammar" if self.grammar else "none"


def jobs() -> list[Job]:
    """Each skeleton under the processor, under a grammar and alone, greedy and drawn."""
    made = []
    for name, prompt in ASKED:
        automaton = moldrift.SkeletonAutomaton(MODEL, name)
        # Where prompt and text are one, the prompt is the skeleton's.
        ids = automaton.prompt_ids(prompt) if name == "enriched-smiles" else automaton.ids("Write it.\n")
        for seed in range(SEEDS):
            made.append(Job(name, ids, seed, asked={"skeleton": name, "prompt": prompt}))
            made.append(Job(name, ids, seed, grammar=automaton.grammar(prompt)))
            # What nothing holds need not end.
            made.append(Job(name, ids, seed, tokens=200))
    return made


def answers(jobs: list[Job], folder: Path) -> list[list[int]]:
    """The ids that vLLM writes."""
    (folder / "script.py").write_text(SCRIPT)
    (folder / "jobs.json").write_text(json.dumps([asdict(job) for job in jobs]))
    command = [sys.executable, str(folder / "script.py"), str(MODEL), str(folder / "jobs.json")]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", **os.environ}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    [ids] = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[[")]
    return ids


@pytest.mark.slow
def test_every_text_is_one_of_its_skeleton(tmp_path: Path) -> None:
    asked, data = jobs(), dict(ASKED)
    # Free text before a marker has no end of its own.
    free = Job("simple-cif", asked[0].prompt_ids, 1, {"skeleton": "simple-cif", "prompt": SALT}, tokens=60)
    joined = next(job for job in asked if job.name == "enriched-smiles")
    molecule = Job("the molecule", joined.prompt_ids, 0, data["enriched-smiles"])
    *texts, before_marker, of_molecule = answers([*asked, free, molecule], tmp_path)

    whole = dict.fromkeys(("processor", "grammar", "none"), 0)
    for job, ids in zip(asked, texts, strict=True):
        automaton = moldrift.SkeletonAutomaton(MODEL, job.name)
        is_one = is_whole(automaton, data[job.name], ids)
        whole[job.way] += is_one
        assert is_one or job.way == "none", (job.name, job.way, automaton.text(ids))
    # The model alone writes molecules, and no crystals, or the test would show nothing.
    assert whole["none"] <= SEEDS
    assert texts[asked.index(joined)] == of_molecule
    moldrift.SkeletonAutomaton(MODEL, "simple-cif").allowed_ids(SALT, before_marker)


def is_whole(automaton: Any, prompt: dict[str, Any], ids: list[int]) -> bool:
    """Whether ids are a whole text of a skeleton and the end of a text."""
    *written, end = ids
    if end != automaton.eos_token_id:
        return False
    try:
        return end in automaton.allowed_ids(prompt, written)
    except moldrift.ForbiddenToken:
        return False
