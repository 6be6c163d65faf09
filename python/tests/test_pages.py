"""The examples of both READMEs and of ``docs/`` run as a reader runs them: commands word for word in a folder with the files
that they name (`stand_ins.py`), Python from the root of the repository, each block in an interpreter of its own.

A block that is neither run nor listed here with the place that runs it fails a test. What takes long is marked slow.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import built_program
from pages import REPOSITORY, Block, blocks, blocks_of
from stand_ins import MAKERS, Folder

#: What is not run here: how it begins, why, and where it is tested, with words that stand there.
ELSEWHERE = {
    "cargo test --release --test it bases": (
        "a part of `cargo test --release`",
        "tests/it/main.rs",
        "mod bases;",
    ),
    "smiles, texts = moldrift.read_generations(": (
        "needs a run of theirs",
        "python/tests/test_judge.py",
        "moldrift.read_generations(given)",
    ),
    "DRIFT_RANDOM_MOLECULES=2000": ("takes minutes", "tests/it/encode_rdkit.rs", "DRIFT_RANDOM_MOLECULES"),
    "cargo test --release": ("takes minutes", ".ci/run", "phase tests cargo test --release"),
    "cargo test --test it -- coverage::": ("a part of `cargo test`", "tests/it/main.rs", "mod coverage;"),
    "pip install './python[transformers]'": (
        "makes an environment of gigabytes: that of the newest versions",
        ".ci/run",
        "pip install './python[transformers]'",
    ),
    "pip install --requirement python/requirements-wheel.txt": (
        "makes an environment",
        "python/wheel.py",
        "pip install --requirement python/requirements-wheel.txt",
    ),
    "python python/wheel.py dist": ("builds for minutes", ".ci/run", "python/wheel.py"),
    "pip install './python[trl]'": (
        "TRL is part of the environment of the newest versions",
        ".ci/run",
        "'trl>=1.8.0,<2'",
    ),
    "python python/examples/grpo.py": (
        "trains for a while",
        "python/tests/test_trl.py",
        "def test_the_example(",
    ),
    "python tests/benches/against.py": ("writes 3 GB", "tests/benches/against.py", "--rows"),
    "drift mine big/train.jsonl": ("reads them", "tests/it/against.rs", "fn spelling_pose_and_bound("),
    "drift audit texts.jsonl --dialect fixed --energy 'python": (
        "needs xtb",
        "tests/it/energy.rs",
        "fn xtb_finds_the_strain_of_texts(",
    ),
    "drift eval --model MODEL --corpus test.pickle": (
        "needs xtb",
        "tests/it/energy.rs",
        "fn an_evaluation_asks_for_energies_as_an_audit_of_its_texts_does(",
    ),
    "drift eval --model MODEL --corpus distinct_smi.pickle": (
        "needs a pickle of theirs",
        "tests/it/protocol.rs",
        "fn isomers_are_pooled_as_an_audit_of_the_texts_pools_them(",
    ),
    "drift eval --corpus small --samples 423": ("writes 2,115 texts", "python/benches/judge.py", "written"),
    "python python/benches/judge.py written": (
        "PoseBusters takes minutes",
        "python/benches/judge.py",
        "written",
    ),
    "python python/benches/rivals.py": (
        "PoseBusters and xtb take minutes",
        "python/benches/rivals.py",
        "--relaxed",
    ),
    "python python/benches/crystals.py drift WORK": (
        "trains for a quarter of an hour",
        "python/tests/test_crystals.py",
        '"crystals.py"',
    ),
    "python python/examples/transformers_generate.py": (
        "needs transformers",
        "python/tests/engines/test_rows.py",
        '"transformers_generate.py", tmp_path',
    ),
    "python python/examples/vllm_offline.py": (
        "needs vLLM",
        "python/tests/engines/test_rows.py",
        '"vllm_offline.py", tmp_path',
    ),
    "drift audit transformers-plain.jsonl": (
        "reads what they wrote",
        "python/tests/engines/test_rows.py",
        "moldrift.audit(files, row_field=",
    ),
    "report = moldrift.audit(": (
        "needs texts of an engine",
        "python/tests/engines/test_rows.py",
        "moldrift.audit(strings, smiles=SMILES",
    ),
    "drift slurm status": ("needs a job that runs", "tests/slurm/shards.sh", "slurm status"),
    "from vllm import LLM": ("needs vLLM", "python/tests/engines/test_ready_lines.py", "def test_vllm("),
    "vllm serve MODEL": (
        "a server of vLLM; the backend is tested offline",
        "python/benches/vllm_grammars.py",
        '"backend": backend',
    ),
}

#: What takes more than ten seconds: run with `-m slow`.
SLOW = (
    "cargo run --release -- eval",
    "drift eval --model Qwen/Qwen3-0.6B",
    "drift eval --model eval/llama-like",
    "drift eval --samples 24",
    "drift eval --model model",
    "drift eval --model path/to/model --lp none,allowlist,automaton --samples 200",
    "drift train-",
)

#: Trains for half an hour. It is stopped by Ctrl-C after so many seconds, and has to keep its state.
TRAINING, STOPPED_AFTER = "drift train-model", 15

#: Indented blocks that are no code: what they show.
TEXTS = {
    'docs/against.md: {"file"': "a line of a list",
    'docs/corpus.md: {"file"': "a line of a list",
    "docs/corpus.md: [SMILES]": "a unit",
    "README.md: [C]<": "a molecule as models write it",
    "python/README.md: [C]<": "the same",
    "docs/grammars.md: start: ": "rules of a grammar",
}

#: `test_tutorial.py` runs it from beginning to end.
TUTORIAL = "docs/tutorial.md"

BLOCKS = [block for block in blocks() if block.page != TUTORIAL]
SHELL = [block for block in BLOCKS if block.is_shell]
PYTHON = [block for block in BLOCKS if block.language.split()[:1] == ["python"]]


def listed(code: str) -> str | None:
    """The entry of `ELSEWHERE` for a command or a block of Python."""
    return next((begin for begin in ELSEWHERE if code.startswith(begin)), None)


def is_slow(step: str) -> bool:
    """Whether a command takes long."""
    return step.startswith(SLOW)


def parts(block: Block) -> list[list[str]]:
    """The commands to run, in parts: behind an empty line another example begins."""
    found = []
    for lines in re.split(r"\n\s*\n", block.code):
        steps = [
            step for step in Block(block.page, block.line, block.language, lines).steps() if not listed(step)
        ]
        found += [steps] if steps else []
    return found


#: Examples of commands by the page and how they begin.
EXAMPLES = {f"{block.page}: {steps[0][:60]}": (block, steps) for block in SHELL for steps in parts(block)}


def supposed(step: str) -> set[str]:
    """The stand-ins that a command reads."""
    reads = re.sub(r"(?:-o|>) +\S+", "", step)
    return {name for name in MAKERS if re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", reads)}


def written(step: str) -> list[str]:
    """The outputs that a command names."""
    return re.findall(r"(?: -o| >| --texts| --molecules) +([^\s;$]+)(?=\s|$)", step)


def run(step: str, folder: Folder) -> str:
    """What a command prints; fails where it fails, or does not write what it names."""
    is_cargo = step.startswith("cargo ")
    if is_cargo and not (shutil.which("cargo") and (REPOSITORY / "target/release/drift").is_file()):
        pytest.skip("cargo has built nothing here")
    folder.provide(supposed(step))
    where = REPOSITORY if is_cargo else folder.path
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step],
        cwd=where,
        env=folder.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{step}\n{ran.stderr[-2000:]}"
    for name in written(step):
        path = folder.home / name[2:] if name.startswith("~/") else folder.path / name
        assert path.is_dir() or path.stat().st_size > 0, f"{step}: {name} is empty"
    return ran.stdout


def train_and_stop(step: str, folder: Folder) -> None:
    """Trains for a while, as a reader who then presses Ctrl-C."""
    folder.provide(supposed(step))
    command = ["bash", "-c", f"exec {step}"]
    started = subprocess.Popen(
        command, cwd=folder.path, env=folder.environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        _, said = started.communicate(timeout=STOPPED_AFTER)
    except subprocess.TimeoutExpired:
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=120)
    assert started.returncode == 130, f"{step}\n{said[-2000:]}"
    assert re.search(
        r"interrupted; the state after \d+ of \d+ steps was kept; continue with --resume", said
    ), said
    # What follows in the page wants the model that a whole training makes.
    for name in written(step):
        shutil.rmtree(folder.path / name)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder for commands; tests are skipped where the program was not built."""
    program = built_program()
    if program is None:
        pytest.skip("drift is not built: cargo build --release, or DRIFT_BINARY")
    (tmp_path / "here").mkdir()
    return Folder(tmp_path / "here" / "work", program)


@pytest.mark.program
@pytest.mark.parametrize(
    "name", [name for name, (_, steps) in EXAMPLES.items() if not all(map(is_slow, steps))]
)
def test_commands_do_what_the_page_says(name: str, folder: Folder) -> None:
    block, steps = EXAMPLES[name]
    printed = [run(step, folder) for step in steps if not is_slow(step)]
    if block.language == "console":
        assert printed[0].rstrip() == block.shown()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, (_, steps) in EXAMPLES.items() if any(map(is_slow, steps))])
def test_commands_that_take_long(name: str, folder: Folder) -> None:
    for step in EXAMPLES[name][1]:
        if step.startswith(TRAINING):
            train_and_stop(step, folder)
        else:
            run(step, folder)


@pytest.mark.program
def test_the_first_answer_is_that_of_the_first_command(folder: Folder) -> None:
    [block] = [
        block
        for block in BLOCKS
        if block.page == "README.md" and block.language == "text" and "FREE" in block.code
    ]
    printed = run("drift fit", folder)
    for part in block.code.split("\n\n"):
        assert part in printed


#: Fenced texts that are no output of a command: how they begin, and what they are.
NO_OUTPUT = {
    "indptr, indices = automaton.legal(": "signatures",
    "import math, sys": "the skeleton of a program",
    "pip install 'dist/moldrift-": "commands for another machine",
    "Rows, binned-v2": "of a run with vLLM; python/tests/engines/test_rows.py checks such tables",
}

#: Fenced texts that are output, with the test that compares them with a run.
OUTPUT = {
    "qwen-like, fixed: use": "test_the_first_answer_is_that_of_the_first_command",
    "0.0000,0.0000,0.0000": "test_python_prints_what_the_page_says",
    "qwen-like, 64 texts each": "test_the_table_of_eval_is_that_of_the_run",
}


def test_every_output_is_compared_with_a_run() -> None:
    texts = [
        block
        for block in BLOCKS
        if block.language == "text" and not (block.name.startswith(tuple(TEXTS)) and not is_fenced(block))
    ]
    for block in texts:
        begins = [begin for begin in (*NO_OUTPUT, *OUTPUT) if block.code.startswith(begin)]
        assert len(begins) == 1, f"{block.name}: say what it is"
    assert len(texts) == len(NO_OUTPUT) + len(OUTPUT)
    assert all(test in globals() for test in OUTPUT.values())


def without_speed(line: str) -> str:
    """A row of a table of `eval` without its last cell, the tokens per second of a machine."""
    return re.sub(r" +[\d,]+$", "", line.rstrip())


@pytest.mark.slow
def test_the_table_of_eval_is_that_of_the_run(folder: Folder) -> None:
    [block] = [block for block in BLOCKS if block.code.startswith("qwen-like, 64 texts each")]
    printed = {without_speed(line) for line in run("drift eval", folder).splitlines()}
    for line in block.code.splitlines():
        assert without_speed(line) in printed, f"{block.page} shows a line that eval does not print: {line}"


def execute(code: str, folder: Path, needed: tuple[str, ...], **environment: str) -> str:
    """What Python prints; skipped where a module that it needs is not installed."""
    for module in needed:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def imported(code: str) -> tuple[str, ...]:
    """The packages that a block imports."""
    lines = re.findall(r"^(?:import|from) (.*?)(?: import .*)?$", code, re.MULTILINE)
    return tuple({name.strip().split(".")[0].split(" ")[0] for line in lines for name in line.split(",")})


ETHANOL = re.compile(r"\[CONFORMER\]\[C\]<[-0-9.,]+>\[C\]<[-0-9.,]+>\[O\]<[-0-9.,]+>\[/CONFORMER\]")


def ten_lines(printed: str) -> None:
    lines = printed.splitlines()
    assert lines[0].startswith("[CONFORMER][C]<")
    assert lines[-1] == "1 of 1 passed"


def a_batch(printed: str) -> None:
    assert printed.count("[/CONFORMER]") == 2
    assert printed.strip().endswith(" passes")


def a_table(printed: str) -> None:
    assert printed.startswith("0.0000,0.0000,0.0000\n")
    assert "truncated_blocks" in printed


def ethanol(printed: str) -> None:
    assert ETHANOL.search(printed)


def a_request(printed: str) -> None:
    assert json.loads(printed)["sampling_params"]["ebnf"].startswith("root ::= ")


def a_judge(printed: str) -> None:
    assert printed.splitlines() == ["[ True False] another molecule: CCN, not CCO", "[0.02] [[1. 1.]]"]


def a_policy(printed: str) -> None:
    said = printed.splitlines()
    assert said[0].startswith("forced: ")
    least, most = map(float, re.findall(r"-?\d+\.\d+", said[1]))
    assert least <= most <= 0
    assert 1 <= float(said[3].split()[3]) <= 8


def a_salt(printed: str) -> None:
    # Chlorine is missing, or another formula unit begins with either element.
    assert ast.literal_eval(printed) == ["Cl", "Na"]


def a_reward(printed: str) -> None:
    # The block itself asserts that both rewards are equal.
    terms = ast.literal_eval(printed)
    assert terms["valid"] == 4 and 0 < terms["reward"] < 2, terms


def a_geometry(printed: str) -> None:
    assert printed == "['1']\n"


def two_rewards(printed: str) -> None:
    assert printed == "[1.5  1.49 0.  ]\n"


def as_shown(printed: str) -> None:
    [shown] = [block for block in BLOCKS if block.language == "text" and block.code in printed]
    assert printed == f"{shown.code}\n"


#: Blocks of Python by words that stand in them, with what they print. Those with None have a test of their own.
PRINTED: dict[str, Callable[[str], None] | None] = {
    'print(moldrift.audit([{"smiles": smiles, "text": text}])': ten_lines,
    "custom_generate=moldrift.constrained_generate": a_batch,
    "pandas.DataFrame(report.rows": a_table,
    "from moldrift.torch import masked_log_probs": a_policy,
    'judge = moldrift.Judge({"CCO": [ethanol]}, thresholds=': a_judge,
    "import llguidance.hf": ethanol,
    "import xgrammar": ethanol,
    "print(json.dumps(request))": a_request,
    "geometry = moldrift.GeometryAutomaton(": a_geometry,
    "from moldrift.rewards import FBeta": a_reward,
    'judge = moldrift.Judge({"CCO": [reference]})': as_shown,
    'reward={"valid": 1.0, "rmsd": 0.5}': two_rewards,
    'moldrift.SkeletonAutomaton("qwen-like", "crystal-text")': a_salt,
    "def edges(table, at, place):": None,
    "dcp.dcp_to_torch_save": None,
}


def python_block(words: str) -> Block:
    """The one block of Python in which words stand."""
    [block] = [block for block in PYTHON if words in block.code]
    return block


@pytest.mark.parametrize("words", [words for words, check in PRINTED.items() if check])
def test_python_prints_what_the_page_says(words: str) -> None:
    block, check = python_block(words), PRINTED[words]
    assert check is not None
    # What loads a tokenizer or a model of transformers needs torch, which it does not import itself.
    needed = imported(block.code)
    check(execute(block.code, REPOSITORY, (*needed, "torch") if "transformers" in needed else needed))


def test_ten_lines_are_ten() -> None:
    code = python_block('print(moldrift.audit([{"smiles": smiles, "text": text}])').code
    assert len([line for line in code.splitlines() if line.strip()]) == 10


def test_edges_of_tables_are_the_automatons() -> None:
    import moldrift

    automaton = moldrift.Automaton("qwen-like", "stripped")
    names: dict[str, Callable[..., dict[int, tuple[int, int | None]]]] = {}
    exec(python_block("def edges(table, at, place):").code, names)
    for smiles in ("CCO", "c1ccccc1", "[Na+].[Cl-]"):
        table = json.loads(automaton.grammar(smiles, "json"))
        at, place, ids = 0, table["segments"][table["order"][0]]["roots"][0], []
        while place is not None:
            legal = names["edges"](table, at, place)
            assert sorted(legal) == automaton.allowed_ids(smiles, ids)
            ids.append(max(legal) if len(ids) % 3 else min(legal))
            at, place = legal[ids[-1]]
            assert len(ids) < 500
        assert automaton.allowed_ids(smiles, ids) == [table["eos"]]


def test_a_checkpoint_of_torch_distributed(folder: Folder) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import torch.distributed.checkpoint as dcp

    model = transformers.AutoModelForCausalLM.from_pretrained(REPOSITORY / "eval/qwen-like")
    dcp.save(model.state_dict(), checkpoint_id=str(folder.path / "step-1000"))
    block = python_block("dcp.dcp_to_torch_save")
    execute(
        block.code, folder.path, (), HOME=str(folder.home), HF_HOME=str(folder.home / ".cache/huggingface")
    )
    read = transformers.AutoModelForCausalLM.from_pretrained(folder.path / "model", dtype=torch.float32)
    for name, tensor in model.state_dict().items():
        assert torch.equal(read.state_dict()[name], tensor.bfloat16().float()), name


def test_every_block_is_run_or_listed(tmp_path: Path) -> None:
    for block in BLOCKS:
        if block.language == "json":
            # Files of encodings.
            moldrift = pytest.importorskip("moldrift")
            (tmp_path / "encoding.json").write_text(block.code)
            moldrift.Automaton("qwen-like", encoding=tmp_path / "encoding.json")
            continue
        if block.language.split()[:1] == ["python"]:
            runs = [words for words in PRINTED if words in block.code]
            assert len(runs) == 1 or listed(block.code), f"{block.name}, line {block.line}: is not run"
        elif block.is_shell:
            for step in block.steps():
                is_known = step.startswith(("cargo ", "drift ", "for ", "mkdir ", "printf ", "sbatch "))
                assert is_known or listed(step), f"{block.name}: `{step}` is not run"
        else:
            is_text = block.language == "text" and (is_fenced(block) or block.name.startswith(tuple(TEXTS)))
            assert is_text, f"{block.name}, line {block.line}: is no block that a test knows"


def is_fenced(block: Block) -> bool:
    """Whether a block stands between fences."""
    return (
        (REPOSITORY / block.page).read_text(encoding="utf-8").splitlines()[block.line - 2].startswith("```")
    )


#: Pages that are looked up, not read from the beginning.
LISTS = ("SUMMARY.md", "options.md")


def beginning(page: Path) -> tuple[str, list[Block]]:
    """The first paragraph of a page, and the blocks before its first section."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ") and not lines[1], f"{page.name} begins with its title"
    paragraph = lines[2 : lines.index("", 2)]
    section = next((at for at, line in enumerate(lines, 1) if line.startswith("## ")), len(lines))
    return " ".join(paragraph), [one for one in blocks_of(page) if one.line < section]


@pytest.mark.parametrize(
    "page",
    sorted(page for page in (REPOSITORY / "docs").glob("*.md") if page.name not in LISTS),
    ids=lambda page: page.name,
)
def test_a_page_begins_with_its_question_and_an_example(page: Path) -> None:
    paragraph, found = beginning(page)
    assert "?" in paragraph, f"{page.name}: which question does it answer?"
    code = [one for one in found if one.is_shell or one.language.startswith("python")]
    assert code, f"{page.name}: the example stands before the first section"
    commands = [step for one in code if one.is_shell for step in one.steps()]
    elsewhere = [step for step in commands if listed(step)]
    assert len(elsewhere) < len(commands) or not commands, f"{page.name}: the example runs elsewhere"


def test_lists_are_of_what_is_there() -> None:
    steps = [step for block in SHELL for step in block.steps()]
    code = [*steps, *(block.code for block in PYTHON)]
    for begin, (reason, place, words) in ELSEWHERE.items():
        assert any(listed(one) == begin for one in code), begin
        assert reason
        assert words in (REPOSITORY / place).read_text(encoding="utf-8"), f"{begin}: {place} has no `{words}`"
    for begin in SLOW:
        assert any(step.startswith(begin) for step in steps), begin
    for words in PRINTED:
        python_block(words)
    for name in TEXTS:
        assert any(block.name.startswith(name) for block in BLOCKS), name
    for name in MAKERS:
        assert any(name in supposed(step) for step in steps), name


def test_blocks_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pages

    page = tmp_path / "page.md"
    loop = "    for i in 1 2; do\n        drift mine $i \\\n            -o $i\n    done\n"
    page.write_text(
        f"Text\n\n    drift fit -o out    # comment\n{loop}\n```sh\ndrift eval\n```\n\n- item\n  `drift mine`\n\n"
        "    $ drift inspect C\n    shown\n\n```python vllm\nimport a\n\nb()\n```\n\n    def f():\n\n        return 1\n"
    )
    monkeypatch.setattr(pages, "REPOSITORY", tmp_path)
    found = list(blocks_of(page))
    assert [(one.language, one.line) for one in found] == [
        ("sh", 3),
        ("sh", 10),
        ("console", 16),
        ("python vllm", 20),
        ("python", 25),
    ]
    assert found[0].steps() == [
        "drift fit -o out",
        "for i in 1 2; do\n    drift mine $i \\\n        -o $i\ndone",
    ]
    assert (found[2].steps(), found[2].shown()) == (["drift inspect C"], "shown")
    assert found[3].code == "import a\n\nb()"


def test_a_command_that_fails_or_writes_nothing_is_seen(folder: Folder) -> None:
    with pytest.raises(AssertionError, match="no-such-verb"):
        run("drift no-such-verb", folder)
    with pytest.raises(AssertionError, match="out is empty"):
        run("true > out", folder)
    with pytest.raises(FileNotFoundError):
        run("true -o other", folder)
