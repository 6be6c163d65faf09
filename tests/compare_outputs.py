#!/usr/bin/env python3
"""Runs two builds of drift on a list of commands and compares everything they write, byte for byte.

    tests/compare_outputs.py OLD NEW [--only WORD] [--keep DIR]

Files, stdout, stderr and exit codes must be the same, but for MASKS below. A line for each command; the exit code is 1 if
any differs. Each command runs in a folder of its own name, once for each program, so that one can read what another
wrote. Needs Python alone; takes a few minutes.
"""

import argparse
import concurrent.futures
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests/fixtures"
LIMIT_SECONDS = 600

# What may differ: (a pattern, what stands for it). Beside these, the revision that a program was built from is masked, as
# the program itself names it, and the SHA-256 of files that hold a revision.
NUMBER = r"-?[0-9][0-9.,e+-]*"
MASKS = [
    # Dates, times and memory in JSON.
    (r'"date": ?"[^"]*"', '"date": "#"'),
    (r'"seconds": ?\{[^}]*\}', '"seconds": {#}'),
    (
        r'"([a-z_]*per_second|[a-z_]*seconds|peak_memory_bytes|floor_share|speed|speed_ratio|ts|dur)": ?(' + NUMBER + "|null)",
        r'"\1": #',
    ),
    (r'"batch_seconds": ?\[[^\]]*\]', '"batch_seconds": [#]'),
    (r'"speed": ?\{[^}]*\}', '"speed": {#}'),
    # The last column of the short table of `eval`: tokens a second, padded to its width.
    (r"(?m)^((?:none|generic|qwen3[89]|targeted|allowlist|truncating|automaton)\b.* % .*?) +[0-9][0-9,]*$", r"\1 #"),
    # Advice in words.
    (NUMBER + r" times as (fast|long|slow)", r"# times as \1"),
    (r"is fastest: " + NUMBER, "is fastest: #"),
    # Figures of a training that has a clock.
    (NUMBER + r" (tokens|updates) a second", r"# \1 a second"),
]

# Tables in which times stand: their figures, and the width of their columns, are masked as a whole. What they count is
# in the JSON too.
TIMED_TABLES = ["time and throughput", "what it took", "against no logit processor, paired", "What it took", "Against no logit processor"]


def corpus(folder: pathlib.Path, conformers: int) -> pathlib.Path:
    """The first conformers of the embedded corpus, as a file."""
    path = folder / f"first-{conformers}.jsonl"
    with gzip.open(ROOT / "corpora/default.jsonl.gz", "rt") as lines, path.open("w") as out:
        out.writelines(line for line, _ in zip(lines, range(conformers)))
    return path


TEXTS = [
    "[C]<4.0182,1.0374,-0.0007>=[O]<2.0988,-0.4840,-0.6413>",
    "[C]<5.799,-0.2748,-0.9587abra>[C]<0.5,0.25,-1>",
    "no block at all",
    "[C]<>",
]


def inputs(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Files that several commands read."""
    small, some = corpus(folder, 40), corpus(folder, 400)
    rows = [json.loads(line) for line in small.read_text().splitlines()]
    spoiled = folder / "spoiled.jsonl"
    lines = []
    for at, row in enumerate(rows):
        text = row["embedded_smiles"]
        if at % 3 == 1:
            text = text.replace(">", "abra>", 1)
        if at % 5 == 2:
            text = re.sub(r"(\.\d\d)\d\d", r"\1", text)
        if at % 7 == 3:
            text = text[: len(text) // 2]
        generated = f"[SMILES]{row['canonical_smiles']}[/SMILES][CONFORMER]{text}[/CONFORMER]"
        lines.append(json.dumps({"smiles": row["canonical_smiles"], "text": generated}))
    spoiled.write_text("\n".join(lines) + "\n")
    texts = folder / "texts.txt"
    texts.write_text("\n".join(row["embedded_smiles"] for row in rows) + "\n")
    stripped = folder / "stripped.txt"
    short = lambda m: re.sub(r"\.?0*(?=[,>])", "", m.group())
    stripped.write_text("\n".join(re.sub(r"<[^>]*>", short, row["embedded_smiles"]) for row in rows) + "\n")
    bad = folder / "bad.jsonl"
    bad.write_text('{"embedded_smiles": 3}\n{"half": \n' + small.read_text() + "[C]<1,2>\n")
    smiles = folder / "smiles.txt"
    smiles.write_text("CCO\nc1ccccc1O\nCC(=O)N\n")
    for name, content in [("empty", ""), ("noise", "\x00\x01 noise"), ("not.json", "{")]:
        (folder / name).write_text(content)
    return {path.stem: path for path in folder.iterdir()} | {"small": small, "some": some}


def commands(i: dict[str, pathlib.Path]) -> list[tuple[str, list]]:
    """Names and arguments."""
    listed = []

    def add(name, *arguments, stdin=None):
        listed.append((name, [str(argument) for argument in arguments], stdin))

    def both(name, *arguments):
        add(name, *arguments)
        add(name + "-json", *arguments, "--json")

    small, some = i["small"], i["some"]
    tokenizer = lambda name: FIXTURES / "tokenizers" / name

    # mine
    sources = [small, i["bad"], i["texts"], i["stripped"], *(FIXTURES / name for name in ["ani1x.h5", "spice.h5"])]
    sources += [FIXTURES / name for name in ["geom_crude.msgpack", "rdkit_folder.tar.gz", "test_set.pickle", "pickles"]]
    for source in sources:
        both(f"mine-{source.name}", "mine", source, "-o", "store.h5", "--html", "page.html")
    both("mine-principal", "mine", small, "--frame", "principal", "-o", "store.h5")
    add("mine-stdout", "mine", small, "-o", "-")
    both("mine-store", "mine", f"../mine-{small.name}/store.h5")

    # fit
    add("fit", "fit", "-o", "fitted", "--verbose")
    add("fit-stdout", "fit", "-o", "-", "--no-classes")
    both("fit-some", "fit", "--corpus", some, "--seed", 3, "-o", "fitted")
    both("fit-stripped", "fit", "--corpus", some, "--dialect", "stripped", "--no-classes")
    both("fit-fixed", "fit", "--corpus", some, "--dialect", "fixed", "--weights", 1, 2, 3, "--candidate", "1.5,2.5,-3.5")
    add("fit-tolerance", "fit", "--corpus", some, "--tolerance", 0.01, "--no-classes", "--json")
    for name in sorted(os.listdir(FIXTURES / "tokenizers")):
        add(f"fit-{name}", "fit", "--corpus", some, "--tokenizer", tokenizer(name), "--no-classes", "--json")
    add("fit-store", "fit", "--corpus", f"../mine-{small.name}/store.h5", "--no-classes", "--json")

    # train-tokenizer
    extend = lambda base, *rest: ["train-tokenizer", "--corpus", small, "--base", base, *rest, "--range", 1, "-o", "out"]
    both("extend-9", *extend("qwen-like", "--tokens-per-block", 9))
    add("extend-separate", *extend("llama-like", "--tokens-per-block", 11, "--kind", "separate", "--json"))
    add("extend-budget", *extend("qwen-like", "--budget", 300))
    add("extend-stripped", *extend("qwen-like", "--tokens-per-block", 9, "--dialect", "stripped", "--fewest-decimals", 4))
    add("extend-again", *extend("../extend-9/out", "--tokens-per-block", 9))
    add("extend-sentencepiece", *extend(tokenizer("llama-2-like"), "--tokens-per-block", 12))
    add("extend-model", *extend(ROOT / "eval/qwen-like", "--tokens-per-block", 12, "--model", ROOT / "eval/qwen-like"))
    add("extend-merges", *extend("qwen-like", "--merges", 40))
    add("extend-compare", *extend("qwen-like", "--merges", 20, "--compare"))
    add("scratch", "train-tokenizer", "--corpus", small, "--vocab-size", 400, "--range", 1, "-o", "out")

    # inspect
    for name in ["qwen-like", "llama-like", "qwen-like-fused", "llama-like-separate", tokenizer("gemma-like")]:
        both(f"inspect-{pathlib.Path(name).name}", "inspect", "--tokenizer", name, *TEXTS)
    add("inspect-stdin", "inspect", "--placeholder", "0.000,0.000,0.000", stdin="\n".join(TEXTS))

    # audit
    both("audit", "audit", i["spoiled"])
    both("audit-references", "audit", i["spoiled"], "--tokenizer", "qwen-like", "--references", small)
    add("audit-stripped", "audit", i["stripped"], "--dialect", "stripped", "--json")

    # eval
    # What runs without --lp has changed.
    every = ["--lp", "all", "--placeholder", "0.0000,0.0000,0.0000"]
    add("eval", "eval", *every, "--samples", 3, "-o", "record", "--texts", "texts.jsonl", "--probabilities")
    add("eval-json", "eval", *every, "--samples", 3, "--json", "--likelihood")
    add("eval-texts", "eval", "--samples", 2, "--generations", 2, "--lp", "none,truncating,automaton", "--texts", "-")
    add("generate", "generate", *every, "--samples", 2, "--max-new-tokens", 60, "--probabilities", "-o", "-")
    add("generate-json", "generate", "--samples", 2, "--lp", "automaton", "-o", "texts.jsonl", "--json")
    add("eval-smiles", "eval", "--smiles", i["smiles"], "--lp", "automaton", "--preset", "greedy", "--json")
    fitted = ["--placeholder", "fitted", "--placeholder", "0.000,0.000,0.000", "--kv-cache", "growing"]
    add("eval-fitted", "eval", "--samples", 2, "--lp", "allowlist", *fitted, "--json")
    file = ["--placeholder", "../fit/fitted/qwen-like.json", "--strip-junk"]
    add("eval-file", "eval", "--samples", 2, "--lp", "generic,targeted", *file, "--json")
    add("eval-stripped", "eval", "--samples", 2, "--lp", "allowlist,automaton", "--dialect", "stripped", "--json")
    add("eval-llama", "eval", "--model", ROOT / "eval/llama-like", "--samples", 2, "--lp", "none,automaton", "--json")

    # compare
    records = ROOT / "eval/records"
    first, second = (records / f"2026-11-20-reference-{name}/record.json" for name in ["qwen-like", "qwen-like-separate"])
    both("compare", "compare", first, second)
    both("compare-same", "compare", first, first)

    # train-model
    shape = ["--hidden", 32, "--layers", 1, "--heads", 2, "--kv-heads", 1, "--head-dim", 16, "--intermediate", 32]
    for arch, name in [("qwen3", "qwen-like"), ("llama", "llama-like-fused")]:
        train = ["train-model", "--arch", arch, "--tokenizer", name, "--corpus", some, *shape, "--batch-tokens", 256]
        add(f"train-{arch}", *train, "--steps", 3, "--outline-steps", 1, "-o", "model", "--json")
    add("train-table", *train, "--steps", 2, "--dialect", "stripped", "--shortest-first", "-o", "model")
    add("eval-trained", "eval", "--model", "../train-qwen3/model", "--samples", 1, "--lp", "automaton", "--json")

    # completions and help
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"]:
        add(f"completions-{shell}", "completions", shell)
    add("help", "--help")
    verbs = ["mine", "fit", "train-tokenizer", "train-model", "audit", "inspect", "eval", "compare", "completions"]
    for verb in verbs:
        add(f"help-{verb}", verb, "--help")

    for at, arguments in enumerate(refused(i, tokenizer)):
        add(f"refused-{at:02}", *arguments)
    return listed


def refused(i: dict[str, pathlib.Path], tokenizer) -> list[list]:
    """Commands with an error, usage or input."""
    small = i["small"]
    extend = ["train-tokenizer", "--corpus", small, "-o", "out"]
    scratch = [*extend, "--vocab-size", 400]
    nine = [*extend, "--base", "qwen-like", "--tokens-per-block", 9]
    train = ["train-model", "--arch", "qwen3", "--tokenizer", "qwen-like", "--corpus", small, "-o", "model"]
    return [
        [],
        ["nothing"],
        ["mine"],
        ["mine", "absent.jsonl"],
        ["mine", i["empty"]],
        ["mine", i["noise"]],
        ["mine", small, "-o", "absent/store.h5"],
        ["mine", small, "--threads", 0],
        ["fit", "--corpus", i["noise"]],
        ["fit", "--tokenizer", "absent"],
        ["fit", "--tokenizer", i["not"]],
        ["fit", "--tokenizer", "qwen-like", "--tokenizer", "qwen-like"],
        ["fit", "--tolerance=-1"],
        ["fit", "--weights", 1, 2, -3],
        ["fit", "--candidate", "1,2"],
        ["fit", "--candidate", "<1,2,3>", "--corpus", small],
        ["fit", "--corpus", small, "-o", small],
        ["fit", "--dialect", "other"],
        extend,
        [*nine, "--range", 0],
        [*nine, "--range", 101],
        [*nine, "--fewest-decimals", 3],
        [*nine, "--dialect", "stripped", "--fewest-decimals", 7],
        [*nine, "--compare", "--dialect", "stripped"],
        [*extend, "--base", "qwen-like", "--tokens-per-block", 1],
        [*extend, "--base", "qwen-like", "--tokens-per-block", 60],
        [*extend, "--base", "qwen-like", "--budget", 1, "--range", 1],
        [*extend, "--base", "qwen-like", "--merges", 0],
        [*extend, "--base", "qwen-like", "--merges", 2000000, "--range", 1],
        [*extend, "--base", tokenizer("llama-2-like"), "--merges", 10, "--range", 1],
        [*extend, "--base", tokenizer("unigram-like"), "--tokens-per-block", 9, "--range", 1],
        [*extend, "--base", "absent", "--tokens-per-block", 9],
        [*nine, "--model", "absent"],
        [*scratch[:-1], 10, "--range", 1],
        [*scratch, "--dialect", "stripped"],
        [*scratch, "--base", "qwen-like"],
        ["inspect", "--tokenizer", "absent", "x"],
        ["inspect", "--placeholder", "<0>", "x"],
        ["audit", "absent"],
        ["audit", i["spoiled"], "--placeholder", "1,2"],
        ["audit", i["spoiled"], "--model", "absent"],
        ["audit", i["spoiled"], "--references", "absent"],
        ["audit", i["smiles"]],
        ["audit", i["empty"]],
        ["eval", "--model", "absent"],
        ["eval", "--model", i["spoiled"].parent],
        ["eval", "--lp", "absent"],
        ["eval", "--placeholder", "1,2"],
        ["eval", "--placeholder", "absent.json"],
        ["eval", "--placeholder", i["not"]],
        ["eval", "--preset", "absent"],
        ["eval", "--preset", "top-p-7-t1.0"],
        ["eval", "--preset", "top-p-0.5-t0"],
        ["eval", "--device", "tpu"],
        ["eval", "--device", "cuda:0"],
        ["eval", "--dtype", "bf16"],
        ["eval", "--samples", 0],
        ["eval", "--json", "--texts", "-"],
        ["eval", "--smiles", i["empty"]],
        ["eval", "--smiles", "absent"],
        ["eval", "--smiles", i["smiles"], "--likelihood"],
        ["eval", "--corpus", i["noise"]],
        ["eval", "--model", ROOT / "eval/qwen-like", "--model", ROOT / "eval/qwen-like", "--samples", 1],
        ["eval", "--tokenizer", "llama-like", "--samples", 1, "--lp", "none"],
        ["eval", "--placeholder", "../fit/fitted/llama-like.json", "--samples", 1, "--lp", "generic"],
        ["compare", "absent", "absent"],
        ["compare", i["not"], i["not"]],
        ["compare", small, small],
        [*train, "--steps", 0],
        [*train, "--batch-tokens", 0],
        [*train, "--learning-rate", 0],
        [*train, "--clip", 0],
        [*train, "--weight-decay", -1],
        [*train, "--prompt-weight", -1],
        [*train, "--copy-weight", 0],
        [*train, "--heads", 3],
        [*train, "--head-dim", 7],
        [*train, "--context", 8],
        [*train, "--resume"],
        ["completions", "absent"],
    ]


def revision(program: pathlib.Path, small: pathlib.Path) -> bytes:
    """The revision that a program names in its results."""
    ran = subprocess.run([program, "mine", small, "--json"], capture_output=True, check=True, cwd=small.parent)
    return json.loads(ran.stdout)["provenance"]["revision"].encode()


def run(program: pathlib.Path, folder: pathlib.Path, arguments: list[str], stdin: str | None) -> None:
    """Runs a command in a folder; what it prints, and its exit code, become files there."""
    folder.mkdir(parents=True)
    # The program's name stands in messages about usage.
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    ran = subprocess.run(
        ["drift", *arguments],
        executable=program,
        cwd=folder,
        input=(stdin or "").encode(),
        capture_output=True,
        env=environment,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    for name, content in [("stdout", ran.stdout), ("stderr", ran.stderr), ("exit code", b"%d" % ran.returncode)]:
        (folder / name).write_bytes(content)


def files(folder: pathlib.Path) -> dict[str, bytes]:
    """All files below a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def timed_tables(text: str) -> str:
    """Masks the figures of tables in which times stand."""
    lines, within = [], False
    for line in text.splitlines(keepends=True):
        if any(title in line for title in TIMED_TABLES):
            within = True
        elif line.strip() == "" or "</table>" in line:
            within = False
        if within:
            line = re.sub(r"(&lt;|[+<~-])?[0-9][0-9.,]*( (ms|s|min|h|µs))?", "#", line)
            line = re.sub(r"[ ─]+", " ", line)
        lines.append(line)
    return "".join(lines)


def masked(content: bytes, own: bytes, hashes: dict[bytes, bytes]) -> bytes:
    """Content without what may differ."""
    content = content.replace(own, b"#" * len(own))
    content = re.sub(rb"\b[0-9a-f]{64}\b", lambda match: hashes.get(match.group(), match.group()), content)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    for pattern, stands in MASKS:
        text = re.sub(pattern, stands, text)
    return timed_tables(text).encode()


def difference(old: bytes, new: bytes) -> str:
    """Where two contents part."""
    at = next((at for at, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    begin = max(0, at - 60)
    return f"byte {at}:\n      old {old[begin:at + 60]!r}\n      new {new[begin:at + 60]!r}"


def main() -> int:
    """Runs and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--only", default="", help="commands whose name holds this word; what they read is not run for them")
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for all that is written")
    asked = parser.parse_args()
    folder = asked.keep or pathlib.Path(tempfile.mkdtemp(prefix="drift-compare-"))
    shared = folder / "inputs"
    shared.mkdir(parents=True)
    given = inputs(shared)
    programs = {"old": asked.old.resolve(), "new": asked.new.resolve()}
    revisions = {side: revision(program, given["small"]) for side, program in programs.items()}
    todo = [command for command in commands(given) if asked.only in command[0]]
    different, compared = [], 0
    hashes = {"old": {}, "new": {}}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, arguments, stdin in todo:
            ways = [pool.submit(run, programs[side], folder / side / name, arguments, stdin) for side in programs]
            for way in ways:
                way.result()
            written = {side: files(folder / side / name) for side in programs}
            for side, found in written.items():
                for file, content in found.items():
                    if revisions[side] in content:
                        digest = hashlib.sha256(content).hexdigest().encode()
                        hashes[side][digest] = f"the SHA-256 of {name}/{file}".encode()
            old, new = (
                {file: masked(content, revisions[side], hashes[side]) for file, content in found.items()}
                for side, found in written.items()
            )
            wrong = [f"{file}: {'only old' if file in old else 'only new'}" for file in sorted(old.keys() ^ new.keys())]
            wrong += [f"{file}: {difference(old[file], new[file])}" for file in old.keys() & new.keys() if old[file] != new[file]]
            compared += len(old)
            code = (folder / "old" / name / "exit code").read_text()
            print(f"{'DIFFERS' if wrong else 'same':8}{name}: {len(old)} files, exit code {code}", flush=True)
            for line in wrong:
                print(f"    {line}")
            different += [name] if wrong else []
    if not asked.keep:
        shutil.rmtree(folder)
    print(f"{len(todo)} commands, {compared} files compared, {len(different)} commands differ: {' '.join(different) or 'none'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
