"""What `run.sh` checks of a drift that runs on the stand-in: its texts beside the CPU's, and what it does when a call fails.

    checks.py DRIFT LIBRARIES [CHECK]...

Checks by name: texts, ways, processors, reference, bf16, kept, memory, failures; all of them without. They run side by side: drift
on a stand-in keeps one core busy.
"""

import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import models

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# Enough for small models and cuBLAS' workspace; what drift measures the bandwidth with takes a quarter of the rest.
MEMORY = 128 << 20
TIMEOUT = 900
CORES = len(os.sched_getaffinity(0))
# What of candle may run where drift's kernels write the texts: what loads weights and copies parts of the cache.
OF_CANDLE = re.compile(r"(copy2d|ucopy|const_set|cast)_\w+")
# What a device of candle's has until the end of the program, if it is not dropped.
OF_A_DEVICE = {"left of contexts", "left of streams", "left of handles of cuBLAS", "left of generators"}


class Failed(Exception):
    pass


class Outcome:
    """How a run of drift ended."""

    def __init__(self, done, folder):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.texts = read(folder / "texts.jsonl")
        record = read(folder / "record.json")
        self.record = json.loads(record) if record else None
        lines = (read(folder / "report") or "").splitlines()
        self.report = collections.Counter()
        for name, count in (line.rsplit(": ", 1) for line in lines):
            self.report[name] = int(count)

    def lines(self):
        """What drift itself wrote on stderr."""
        return [line for line in self.err.splitlines() if not line.startswith(("stand-in: ", "block "))]

    def left(self):
        """What was not given back."""
        left = {name: count for name, count in self.report.items() if name.startswith("left of ") and count}
        return {name: count for name, count in left.items() if count > 1 or name not in OF_A_DEVICE}

    def counts(self, name):
        """A number of each run in the record."""
        return [run[name] for run in self.record["runs"]]


def read(path):
    return path.read_text() if path.exists() else None


class Bench:
    """Drift, the libraries, and the models in a folder of their own."""

    def __init__(self, drift, libraries, place):
        self.drift, self.libraries, self.place = drift, libraries, place
        self.numbers, self.of_cpu, self.making = itertools.count(1), {}, threading.Lock()
        self.cores = threading.Semaphore(CORES)
        for name in models.SHAPES:
            models.make(place / "models" / name, name)

    def model(self, name):
        return self.place / "models" / name if name in models.SHAPES else ROOT / "eval" / name

    def run(self, model, *arguments, device="cuda:0", fail=None, cache="cache", **settings):
        """Evaluates a model; settings are the stand-in's."""
        folder = self.place / f"run-{next(self.numbers)}"
        folder.mkdir()
        variables = {name: value for name, value in os.environ.items() if not name.startswith("STAND_IN_")}
        variables |= {
            "LD_LIBRARY_PATH": str(self.libraries),
            "XDG_CACHE_HOME": str(self.place / cache),
            "STAND_IN_SOURCES": str(HERE),
            "STAND_IN_REPORT": str(folder / "report"),
            "STAND_IN_MEMORY": str(MEMORY),
        }
        variables |= {f"STAND_IN_{name.upper()}": str(value) for name, value in settings.items()}
        if fail:
            variables["STAND_IN_FAIL"] = fail
        command = [self.drift, "eval", "--quiet", "--model", self.model(model), "--device", device, *arguments]
        if model in models.SHAPES:
            command += ["--dialect", "fixed"]
        command += ["--texts", folder / "texts.jsonl", "-o", folder]
        with self.cores:
            done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT)
        return Outcome(done, folder)

    def cpu(self, model, *arguments):
        """The same on the CPU, once."""
        key = (model, arguments)
        with self.making:
            if key not in self.of_cpu:
                self.of_cpu[key] = self.run(model, *arguments, device="cpu")
            require(self.of_cpu[key].code == 0, f"on the CPU: {self.of_cpu[key].err}")
        return self.of_cpu[key]


def side_by_side(work, *jobs):
    """What `map` gives; as many jobs at once as there are cores. After one that fails no other begins."""
    pool = concurrent.futures.ThreadPoolExecutor(CORES)
    try:
        yield from pool.map(work, *jobs)
    finally:
        pool.shutdown(cancel_futures=True)


def require(holds, what):
    if not holds:
        raise Failed(what)


def require_kernels(outcome, graphs):
    """All steps were done by drift's kernels, on a device that nothing was wrong with; its self-check says so, too."""
    require(outcome.code == 0, f"exit code {outcome.code}: {outcome.err}")
    require(not outcome.err, f"stderr: {outcome.err}")
    steps = outcome.counts("kernel_steps")
    require(steps and all(steps) and steps == outcome.counts("decode_steps"), f"steps by kernels: {steps}")
    require(not outcome.left(), f"at the end there is still {outcome.left()}")
    require((outcome.report["replays"] > 0) == graphs, f"{outcome.report['replays']} replays")
    launched = {name.removeprefix("launches of ") for name in outcome.report if name.startswith("launches of ")}
    candle = {name for name in launched if re.search(r"_(u8|u32|f32|bf16)$", name)}
    require({"pack", "attend", "embed"} <= launched, f"launched: {launched}")
    checked = [run.get("self_check") for run in outcome.record["runs"]]
    require(all(check and check["verdict"] == "passed" for check in checked), f"self-checks: {checked}")
    # A check that was not made before lets candle compute the same.
    require(not all(check["kept"] for check in checked) or all(OF_CANDLE.fullmatch(name) for name in candle), f"of candle there ran {candle}")
    return sorted(candle)


def require_products(outcome, own, overlaps):
    """Products were computed by drift's kernels, or by cuBLAS; kernels were launched early where a GPU can that."""
    kernels = sum(count for name, count in outcome.report.items() if name.startswith("launches of product_"))
    require((kernels > 0) == own, f"{kernels} products by kernels")
    early = outcome.report["launches that may begin early"]
    require((early > kernels) == (own and overlaps), f"{early} launches that may begin early")


def texts(bench):
    """Greedy and sampled texts in f32 are those of the CPU, by each engine, in several orders of threads."""
    def compared(model, preset):
        # More texts than rows: some enter where others ended.
        arguments = ["--samples", "5", "--batch", "2", "--preset", preset, "--lp", "none", "--lp", "automaton"]
        arguments += ["--dtype", "f32", "--max-new-tokens", "24"]
        cpu = bench.cpu(model, *arguments)
        for engine, settings in [
            ("drift", {}),
            ("drift-without-graphs", {"order": 1}),
            ("drift", {"order": 7, "late_copies": 1}),
            ("drift", {"order": 7, "capability": 80}),
            ("drift-cublas", {"order": 1}),
        ]:
            gpu = bench.run(model, *arguments, "--engine", engine, **settings)
            candle = require_kernels(gpu, engine != "drift-without-graphs")
            require_products(gpu, engine != "drift-cublas", "capability" not in settings)
            require(gpu.texts == cpu.texts, f"{model}, {preset}, {engine}: other texts than those of the CPU")
        launches = sum(count for name, count in gpu.report.items() if name.startswith("launches of "))
        counts = f"{cpu.texts.count(chr(10))} texts; {launches} launches and {gpu.report['replays']} replays"
        return f"{model}, {preset}: {counts}; of candle there ran {', '.join(candle)}"

    yield from side_by_side(compared, *zip(*itertools.product(models.SHAPES, ["greedy", "qwen3", "min-p-0.05-t1"])))


def ways(bench):
    """Texts are those of the CPU with prompts of hundreds of tokens, in one row and in many, and where candle must compute."""
    smiles = bench.place / "long.smi"
    prompts = ["C" * 40, "N[C@@H](CS)C(=O)" * 40 + "O", "CCO", "NCC(=O)" * 44 + "O", "N[C@H](CO)C(=O)" * 35 + "O", "CCN"]
    smiles.write_text("".join(f"{prompt}\n" for prompt in prompts))
    both = ["--lp", "none", "--lp", "automaton"]

    def compared(way):
        model, by_kernels, name, arguments = way
        arguments += ["--preset", "qwen3", "--dtype", "f32", "--max-new-tokens", "16"]
        gpu = bench.run(model, *arguments)
        require(gpu.code == 0 and not gpu.err, f"{name}: {gpu.err}")
        require(not gpu.left(), f"{name}: at the end there is still {gpu.left()}")
        require(gpu.texts == bench.cpu(model, *arguments).texts, f"{name}: other texts than those of the CPU")
        require(all(gpu.counts("kernel_steps")) == by_kernels, f"{name}: steps by kernels {gpu.counts('kernel_steps')}")
        return f"{name}: {gpu.texts.count(chr(10))} texts"

    yield from side_by_side(compared, [
        ("qwen3", True, "long prompts", [*both, "--smiles", str(smiles), "--samples", "6", "--batch", "3"]),
        ("llama", True, "shared prompts", [*both, "--samples", "3", "--generations", "4", "--batch", "5"]),
        ("llama", True, "one row", [*both, "--samples", "3", "--batch", "1"]),
        ("llama", True, "many rows", [*both, "--samples", "40", "--batch", "40"]),
        ("qwen3", False, "a growing cache", [*both, "--samples", "3", "--batch", "2", "--kv-cache", "growing"]),
        ("qwen3", False, "probabilities", [*both, "--samples", "3", "--batch", "2", "--probabilities"]),
        ("qwen3", False, "resampled", ["--lp", "automaton", "--samples", "2", "--batch", "4", "--resample", "4"]),
    ])


def processors(bench):
    """Where candle computes, with draws on the device or without, texts are those of the CPU under each logit processor."""
    def compared(way):
        engine, lps = way
        arguments = ["--samples", "3", "--batch", "2", "--preset", "qwen3", "--dtype", "f32", *(lps or ["--max-new-tokens", "24"])]
        gpu = bench.run("qwen3", *arguments, "--engine", engine)
        require(gpu.code == 0 and not gpu.err, gpu.err)
        require(not gpu.left(), f"at the end there is still {gpu.left()}")
        require(gpu.texts == bench.cpu("qwen3", *arguments).texts, f"{engine}: other texts than those of the CPU")
        draws = gpu.report["uses of kernel choose"] + gpu.report["uses of kernel choose_any"]
        require((draws > 0) == (engine == "drift"), f"{engine}: {draws} draws on the device")
        steps = [run["kernel_steps"] for run in gpu.record["runs"]]
        return f"{engine}: {len(steps)} processors, steps by kernels {steps}, {draws} launches that draw"

    # Random coordinates seldom close a ring.
    smiles = bench.place / "rings.smi"
    smiles.write_text("O[C@H]1[C@H]2C[C@H]3[C@@H]1N1[C@@H]2[C@@H]31\n")
    geometry = ["--lp", "geometry", "--backtrack", "2", "--smiles", str(smiles)]
    whole = bench.cpu("qwen3", *geometry, "--preset", "qwen3", "--dtype", "f32").texts
    never = bench.cpu("qwen3", *geometry[:3], "0", *geometry[4:], "--preset", "qwen3", "--dtype", "f32").texts
    require(whole != never, "geometry: no text went back")
    yield from side_by_side(compared, [("drift", []), ("candle", []), ("drift", geometry), ("candle", geometry)])


def reference(bench):
    """The reference checkpoints; the record says that texts are the same."""
    # Small molecules, whose texts end soon: 150 tokens of qwen-like were not written after 800 s.
    smiles = bench.place / "small.smi"
    smiles.write_text("CO\nCN\n")

    def compared(model):
        arguments = ["--samples", "2", "--preset", "greedy", "--lp", "none", "--lp", "automaton", "--dtype", "f32"]
        arguments += ["--smiles", str(smiles), "--max-new-tokens", "64"]
        cpu = bench.cpu(model, *arguments)
        path = bench.place / f"{model}.jsonl"
        path.write_text(cpu.texts)
        gpu = bench.run(model, *arguments, "--same-as", str(path))
        require_kernels(gpu, True)
        require(gpu.texts == cpu.texts, f"{model}: other texts than those of the CPU")
        said = re.search(r"^beside .*", gpu.out, re.MULTILINE)
        return f"{model}: {said[0] if said else 'the same texts'}"

    yield from side_by_side(compared, ["qwen-like", "llama-like", "small-bins"])


def bf16(bench):
    """In bf16 the engines write the same texts where they do the same sums; the CPU has no such type to compare with."""
    def compared(model):
        arguments = ["--samples", "3", "--batch", "2", "--preset", "qwen3", "--lp", "none", "--lp", "automaton"]
        arguments += ["--max-new-tokens", "24"]
        written = []
        for engine in ["drift", "drift-without-graphs"]:
            gpu = bench.run(model, *arguments, "--engine", engine)
            require_kernels(gpu, engine == "drift")
            written.append(gpu.texts)
        require(written[0] == written[1], f"{model}: the engines write other texts")
        gpu = bench.run(model, *arguments, "--engine", "drift-cublas")
        require_kernels(gpu, True)
        require_products(gpu, False, True)
        same = sum(a == b for a, b in zip(gpu.texts.splitlines(), written[0].splitlines()))
        by_cublas = f"{same} of them with products by cuBLAS, whose sums are added in another order"
        return f"{model}: the same {written[0].count(chr(10))} texts by both engines, {by_cublas}"

    def trained(model):
        # A trained model takes roundings further than random weights do; beyond the bound f32 has to say that they are no more than that.
        arguments = ["--samples", "16", "--batch", "16", "--max-new-tokens", "64", "--lp", "automaton", "--preset", "greedy"]
        gpu = bench.run(model, *arguments)
        require_kernels(gpu, True)
        check = gpu.record["runs"][0]["self_check"]
        require(all(doubt["kernels_off"] <= 2 * doubt["candle_off"] for doubt in check["in_doubt"]), f"{check['in_doubt']}")
        return f"{model}: logits differ by {check['largest_difference']:.3f}, f32 was asked {len(check['in_doubt'])} times"

    # What takes longest begins first.
    yield from side_by_side(lambda check, model: check(model), [trained, compared, compared], ["qwen-like", *models.SHAPES])


QUICK = ["--samples", "2", "--batch", "2", "--preset", "qwen3", "--lp", "automaton", "--dtype", "f32", "--max-new-tokens", "12"]


def kept(bench):
    """What was compiled is kept by GPU and shape, and compiled anew where it is not whole."""
    def compilations(cache="kept", **settings):
        outcome = bench.run("qwen3", *QUICK, cache=cache, **settings)
        require_kernels(outcome, True)
        return outcome.report["compilations"]

    require(compilations() == 1, "the first run compiles")
    require(compilations() == 0, "the second takes what was kept")
    (file,) = (bench.place / "kept").rglob("*.cubin")
    whole = file.read_bytes()
    for changed in [whole[:-1], whole[:100], b""]:
        file.write_bytes(changed)
        require(compilations() == 1, "what is cut off is compiled again")
        require(file.read_bytes() == whole, "and kept again")
    require(compilations(capability=80) == 1, "another GPU has its own")
    require(len(list((bench.place / "kept").rglob("*.cubin"))) == 2, "beside the first")
    # A kept cubin that the driver does not take is compiled anew.
    require(compilations(fail="the module of drift:1:200") == 1, "what the driver refuses is compiled again")
    # A folder that cannot be written.
    (bench.place / "file").write_text("")
    require(compilations(cache="file") == 1, "without a folder it compiles")
    yield "compiled once for a GPU; what is cut off, refused or cannot be kept is compiled again"


def require_graceful(bench, outcome, what):
    """Drift told one error, or went another way with a note, and freed what it had."""
    panic = re.search(r"panicked at .*/([\w.-]+/src/.*)\n(.*)", outcome.err)
    require(not panic, f"{what}: panicked at {' '.join(panic.groups()) if panic else ''}")
    require(outcome.code >= 0, f"{what}: ended by signal {-outcome.code}: {outcome.err[-300:]}")
    own = outcome.lines()
    if outcome.code == 0:
        # A device that is lost to its process another process leaves alone, and says so.
        require(all("goes on by candle's operations" in line for line in own), f"{what}: {own}")
        cpu = bench.cpu("qwen3", *QUICK)
        require(outcome.texts == cpu.texts, f"{what}: other texts")
        if not any(outcome.counts("kernel_steps")):
            notes = [line for line in outcome.record["advice"][:1] if "candle's operations" in line]
            require(notes, f"{what}: no word of what computed at the beginning of {outcome.record['advice']}")
            return notes[0]
    else:
        require(len(own) == 1 and own[0].startswith("drift: "), f"{what}: {own}")
        require(outcome.code in (1, 2), f"{what}: exit code {outcome.code}")
    if not outcome.report["failure"]:
        require(not outcome.left(), f"{what}: at the end there is still {outcome.left()} ({outcome.code}: {own})")
    return own[0] if own else None


def memory(bench):
    """A device with less and less memory."""
    def small(size):
        outcome = bench.run("qwen3", *QUICK, memory=size << 19)
        line = require_graceful(bench, outcome, f"{size} half MiB")
        return re.sub(r"[0-9.]+", "N", line or "runs")

    told = collections.Counter(side_by_side(small, [*range(1, 16, 2), *range(16, 80, 4)]))
    for line, count in told.items():
        yield f"{count} × {line}"


def codes_of(name):
    """Codes that a call may return."""
    if name.startswith(("nvrtc", "curand")):
        return [6, 7] if name == "nvrtcCompileProgram" else [1]
    if name.startswith("cublas"):
        return [3, 13]
    if name.startswith(("kernel ", "cuMemcpy", "cuStreamSync")):
        return [719]
    if name.startswith("function "):
        return [500]
    if name == "the module of drift":
        return [2, 209, 222]
    if "Alloc" in name:
        return [2, 719]
    if "GraphInstantiate" in name:
        return [2, 999]
    return [999, 719] if name in ("cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch") else [999]


# Where these fail, cudarc keeps what it has made before, or what it was to undo.
OF_CUDARC = re.compile(
    r"cu(EventCreate|DeviceGetAttribute|CtxSetCurrent|CtxGetCurrent|randSetStream|blasSetStream_v2)"
    r"|(cu|nvrtc)\w*(Destroy|Release|Unload|MemFree)"
)
# Where one of these fails alone, cudarc panics; that they fail after something else did is the matter of `kernel`.
PANICS = re.compile(r"(cublas|curand)Destroy")
# Called only where the kernels are not kept yet, and so neither is a verdict on them.
COMPILES = ("nvrtc", "the module")


def failures(bench):
    """Each call of a run fails at its first, a middle and its last use: with a self-check before it, and where its verdict is kept."""
    whole = bench.run("qwen3", *QUICK, cache="failures")
    require_kernels(whole, True)
    kept_run = bench.run("qwen3", *QUICK, cache="failures")
    uses = whole.report | kept_run.report
    # What is not called where kernels compute products and are launched early.
    cublas = bench.run("qwen3", *QUICK, "--engine", "drift-cublas", cache="failures")
    of_cublas = {name: count for name, count in cublas.report.items() if name not in uses}
    uses |= of_cublas

    def fails(name, use, is_checked, code):
        """What drift tells, and of which failure; the first is None for what is cudarc's."""
        what = f"{name}:{use}:{code}"
        # A cache of its own with the kernels, and with the verdict on them where they are not checked.
        cache = f"failures-{next(bench.numbers)}"
        if not name.startswith(COMPILES):
            kept = "drift/kernels" if is_checked else "drift"
            shutil.copytree(bench.place / "failures" / kept, bench.place / cache / kept)
        engine = ["--engine", "drift-cublas"] if f"uses of {name}" in of_cublas else []
        outcome = bench.run("qwen3", *QUICK, *engine, cache=cache, fail=what)
        try:
            line = require_graceful(bench, outcome, what)
        except Failed as failed:
            if OF_CUDARC.search(name) and "still" in str(failed):
                return None, what
            print(f"  FAILED {failed}", flush=True)
            return "failed", what
        return re.sub(r"[0-9]+", "N", line or "goes on"), what

    cases = []
    for name, count in sorted(uses.items()):
        name, is_use = name.removeprefix("uses of "), name.startswith("uses of ")
        if is_use and not PANICS.match(name):
            checked = [True] if name.startswith(COMPILES) else [True, False]
            cases += itertools.product([name], sorted({1, (count + 1) // 2, count}), checked, codes_of(name))
    told = collections.defaultdict(list)
    for line, what in side_by_side(fails, *zip(*cases)):
        if line:
            told[line].append(what)
    for line, which in sorted(told.items(), key=lambda told: -len(told[1])):
        yield f"{len(which)} × {line[:240]}: {', '.join(which[:4])}"
    require(not told["failed"], f"{len(told['failed'])} of them")


CHECKS = [texts, ways, processors, reference, bf16, kept, memory, failures]


def tried(bench, check):
    """Prints what a check found, in one piece; returns whether it passed."""
    begin, lines = time.monotonic(), []
    try:
        lines += check(bench)
        verdict = "passed"
    except (Failed, subprocess.TimeoutExpired) as error:
        verdict = f"FAILED: {error}"
    lines = [*(f"  {line}" for line in lines), f"{check.__name__}: {verdict} ({time.monotonic() - begin:.0f} s)"]
    print("\n".join(lines), flush=True)
    return verdict == "passed"


def main():
    drift, libraries, *wanted = sys.argv[1:]
    checks = [check for check in CHECKS if check.__name__ in wanted or not wanted]
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(len(CHECKS)) as pool:
        bench = Bench(drift, libraries, pathlib.Path(place))
        passed = list(pool.map(tried, itertools.repeat(bench), checks))
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
