#!/usr/bin/env bash
# What needs a GPU: bash eval/gpu.sh DRIFT OUT, where DRIFT was built with --features cuda. In this order, or those that PARTS names:
#   machine    the GPU, its driver, the libraries and packages that are there
#   check      `drift device`: the self-check and the speed of each engine, in less than five minutes; OUT/drift-device.json is to be kept
#   texts      greedy texts in f32 beside the CPU's, of the reference checkpoints and of random weights of the users' shapes, by every
#              engine: which are the same, where others first differ, and by how much the best logit led there; and greedy texts in bf16
#              with products by kernels beside those with cuBLAS
#   junk       1,005 texts of each reference checkpoint without a processor and under the automaton, in bf16
#   memory     a batch that does not fit: refused with one that does, which is then run
#   speed      the users' shapes at each batch: tokens per second, and the time of a step of a full batch beside the least that it can take;
#              with products of few rows by drift's kernels and by cuBLAS; at batch 32 by every engine
#   peers      the users' shapes beside transformers with a processor in Python, and its continuous batching (needs torch and transformers)
# and, of PARTS alone:
#   tables     the tables of the reference checkpoints in bf16 under all processors: junk, lost digits, likelihood
#   products   products of a step by cuBLAS and cuBLASLt, weights as [out, in] and [in, out] (needs torch)
#   kernels    time and bytes of each kernel, the share of logit processor and draw (needs ncu of Nsight Compute)
#   again      the same texts three times over
#   sanitizer  compute-sanitizer over short runs: accesses out of bounds, races, barriers, memory that was never written
# What fails is told, kept in OUT/failed.txt, and does not end the rest; the last exit code is then 1. LIMIT says after how many seconds
# nothing more is begun, and what runs is ended. SAMPLES, GENERATIONS, COMPARED, BATCHES, ENGINES, SHAPES, MODELS, TOKENS and TOOLS make it
# shorter; CPU_TEXTS names a folder of an earlier run whose texts of the CPU are taken; DEVICE=cpu tries the script itself.
set -uo pipefail
drift=$(realpath "${1:?usage: eval/gpu.sh DRIFT OUT}")
mkdir -p "${2:?usage: eval/gpu.sh DRIFT OUT}"
out=$(realpath "$2")
cd "$(dirname "$0")/.." || exit 2
device=${DEVICE:-cuda:0} samples=${SAMPLES:-201} generations=${GENERATIONS:-5} batches=${BATCHES-32 8 128 1}
shapes=${SHAPES-qwen3-0.6b llama-380m} models=${MODELS-qwen-like llama-like small-bins} tokens=${TOKENS:-400}
parts=${PARTS-machine check texts junk memory speed peers}
known='machine check texts junk memory speed peers tables products kernels again sanitizer'
for part in $parts; do
    [[ " $known " == *" $part "* ]] || { echo "PARTS: there is no part $part; give some of $known" >&2; exit 2; }
done
end=$((SECONDS + ${LIMIT:-1000000}))
rm -f "$out/failed.txt"
# Compiled kernels are kept at home, and Python's lines are wanted when they are printed.
export HOME=${HOME:-/root} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
PATH=$PATH:/usr/local/cuda/bin:$(printf '%s:' /opt/nvidia/nsight-compute/*/)
engines=${ENGINES:-drift drift-without-graphs drift-cublas candle}
# The CPU has no graphs.
[ "$device" != cpu ] || engines='drift candle'

# Says what went wrong, and goes on: WORDS…
fail() {
    printf 'FAILED %s\n' "$*" | tee -a "$out/failed.txt" >&2
}

# Runs a program for so many seconds at most, whatever it comes to; where no time is left that is 124, as of one that took too long:
# SECONDS PROGRAM…
limited() {
    local limit=$1 left=$((end - SECONDS))
    shift
    [ $left -gt 0 ] || return 124
    timeout --kill-after=5 $((limit < left ? limit : left)) "$@"
}

# The same of a program that is to end well: SECONDS PROGRAM…
try() {
    local began=$SECONDS status=0
    limited "$@" || status=$?
    shift
    [ $status -eq 0 ] || fail "exit code $status after $((SECONDS - began)) s: $*"
    return $status
}

# What runs did; a step that drift's kernels did not do is a failure, but where another engine was asked for: RECORD OPTION…
told() {
    local others=()
    [ "$device" != cpu ] || others=(--any-engine)
    try 60 python3 tests/benches/gpu_record.py "$@" "${others[@]}"
}

machine() {
    local missing
    [ "$device" = cpu ] || try 20 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv
    try 60 python3 - <<'P'
import importlib.metadata as metadata
for name in ("torch", "transformers", "vllm", "nvidia-cublas", "nvidia-cuda-nvrtc"):
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        print(name, "is not there")
P
    command -v ncu compute-sanitizer || true
    try 20 "$drift" --version
    missing=$(ldd "$drift" | grep 'not found')
    [ -z "$missing" ] || fail "libraries: $missing"
}

# What a person with a GPU runs and sends; a self-check that found something is a failure.
check() {
    try 300 "$drift" device --quiet --device "$device" -o "$out/drift-device.json" || return
    [ "$device" = cpu ] || try 20 python3 - "$out/drift-device.json" <<'P' || true
import json, sys
runs = json.load(open(sys.argv[1]))["runs"]
bad = [run for run in runs if run["problem"] or (run["self_check"] or {"verdict": "passed"})["verdict"] != "passed"]
sys.exit(f"{len(bad)} of {len(runs)}: {bad}" if bad else 0)
P
}

# Sets greedy texts beside those of the CPU: NAME ARGUMENT…
beside_the_cpu() {
    local name=$1 engine record greedy others
    shift
    greedy=(eval --quiet "$@" --preset greedy --lp none,automaton --dtype f32)
    if [ -s "${CPU_TEXTS:-}/$name-cpu.jsonl" ]; then
        cp "$CPU_TEXTS/$name-cpu.jsonl" "$out"
    else
        try 200 "$drift" "${greedy[@]}" --texts "$out/$name-cpu.jsonl" >"$out/$name-cpu.txt" || return
    fi
    for engine in $engines; do
        record=$out/$name-f32-$engine others=()
        [ "$engine" != candle ] || others=(--any-engine)
        try 150 "$drift" "${greedy[@]}" --device "$device" --engine "$engine" --same-as "$out/$name-cpu.jsonl" -o "$record" \
            >"$record.txt" || continue
        sed -n '/^beside /,/^$/p' "$record.txt" | sed "s/^beside/$name, $engine, greedy, f32, $device: beside/"
        told "$record/record.json" "${others[@]}" >"$record.md"
    done
}

# Sets greedy texts in bf16 with products by kernels beside those by cuBLAS, whose sums are added in another order: NAME BATCH ARGUMENT…
beside_cublas() {
    local name=$1-$2 greedy
    greedy=(eval --quiet --batch "$2" "${@:3}" --preset greedy --lp none,automaton --device "$device")
    [ "$device" != cpu ] || return 0
    try 60 "$drift" "${greedy[@]}" --engine drift-cublas --texts "$out/$name-cublas.jsonl" >"$out/$name-cublas.txt" || return
    try 60 "$drift" "${greedy[@]}" --same-as "$out/$name-cublas.jsonl" -o "$out/$name-kernels" >"$out/$name-kernels.txt" || return
    sed -n '/^beside /,/^$/p' "$out/$name-kernels.txt" | sed "s/^beside/$1, batch $2, drift, greedy, bf16: beside/"
    told "$out/$name-kernels/record.json" >"$out/$name-kernels.md"
}

# The options of a checkpoint, with the corpus that it knows.
of_model() {
    local corpus=small
    [ "$1" != llama-like ] || corpus=drug-like
    echo --model "eval/$1" --corpus "$corpus" --samples "$samples"
}

texts() {
    local model shape batch
    for model in $models; do
        beside_the_cpu "$model" $(of_model "$model")
        # Up to 16 and 32 slots, and more.
        for batch in 4 16 32; do beside_cublas "$model" $batch $(of_model "$model"); done
    done
    for shape in $shapes; do
        beside_the_cpu "$shape" --synthetic "$shape" --samples "${COMPARED:-4}" --max-new-tokens 160
        for batch in 4 32; do beside_cublas "$shape" $batch --synthetic "$shape" --samples 32 --max-new-tokens 160; done
    done
}

junk() {
    local model
    for model in $models; do
        try 120 "$drift" eval --quiet $(of_model "$model") --generations "$generations" --batch 128 \
            --lp none,automaton --device "$device" -o "$out/$model-junk" >"$out/$model-junk.txt" && told "$out/$model-junk/record.json"
    done
}

memory() {
    local batch=1024 run again
    # A CPU would be at it for hours.
    [ "$device" != cpu ] || return 0
    # The cache of so many rows is larger than the memory of a GPU. What fits beside weights and cache is told when these are there.
    for again in 1 2 3; do
        run=(eval --quiet --synthetic qwen3-0.6b --samples 201 --generations $(((batch + 200) / 201)) --lp automaton
            --device "$device" --dtype f32 --batch "$batch" -o "$out/memory-$batch")
        if limited 150 "$drift" "${run[@]}" >"$out/memory-$batch.txt" 2>"$out/memory-$batch.err"; then
            [ $batch -lt 1024 ] || fail 'a batch of 1,024 rows of f32 was not refused'
            told "$out/memory-$batch/record.json"
            return
        fi
        cat "$out/memory-$batch.err"
        batch=$(sed -n 's/.*a batch of \([0-9]*\) would fit.*/\1/p' "$out/memory-$batch.err")
        [ -n "$batch" ] || break
    done
    fail "no batch was named that fits, $again times"
}

speed() {
    local shape batch engine name texts others
    for shape in $shapes; do
        for batch in $batches; do
            for engine in $engines; do
                # Of more slots than 32 cuBLAS does the products in any case.
                [[ $engine = drift || $batch = 32 || $engine = drift-cublas && $batch -lt 32 ]] || continue
                name=$out/$shape-$batch-$engine others=() texts=(--samples $((4 * batch)))
                [ "$batch" -le 50 ] || texts=(--samples 201 --generations $(((2 * batch + 200) / 201)))
                # Candle's operations take ten times as long.
                [ "$engine" != candle ] || others=(--any-engine) texts=(--samples "$batch")
                try 120 "$drift" eval --quiet --synthetic "$shape" "${texts[@]}" --lp none,automaton --device "$device" \
                    --batch "$batch" --engine "$engine" --max-new-tokens $((tokens * 3 / 2)) --trace "$name.trace.json" -o "$name" \
                    >"$name.txt" || continue
                printf '\n%s, batch %s, %s\n\n' "$shape" "$batch" "$engine"
                told "$name/record.json" --trace "$name.trace.json" "${others[@]}" | tee "$name.md"
            done
        done
    done
}

peers() {
    local shape
    for shape in $shapes; do
        try 240 python3 tests/benches/real_size.py "$drift" --shape "$shape" --device "$device" --batches $batches \
            --tokens "$tokens" --threads "$(nproc)" --dtypes bf16 --batched | tee "$out/$shape-peers.md"
    done
}

tables() {
    local model placeholders
    for model in $models; do
        # Bins have one placeholder.
        placeholders=(--placeholder 0.0000,0.0000,0.0000 --placeholder 0.000,0.000,0.000)
        [ "$model" != small-bins ] || placeholders=()
        try 600 "$drift" eval --quiet $(of_model "$model") --generations "$generations" --device "$device" --lp all --likelihood \
            "${placeholders[@]}" -o "$out/$model"
    done
}

products() {
    try 240 python3 tests/benches/gpu_products.py --device "$device" --shape $shapes | tee "$out/products.md"
}

kernels() {
    local shape batch engine run layers name
    for shape in $shapes; do
        layers=28
        [ "$shape" != llama-380m ] || layers=16
        for batch in ${BATCHES-32 8}; do
            for engine in drift-without-graphs drift-cublas; do
                name=$out/$shape-$batch-$engine-kernels
                # Two steps, behind 200 others of eight launches a layer: those of a longer context.
                run=(eval --quiet --synthetic "$shape" --samples $((4 * batch)) --batch "$batch" --device "$device"
                    --lp automaton --engine $engine --max-new-tokens "$tokens")
                # Each kernel by itself, those of a graph, too: what begins early begins here when the one before it is over. Caches as the
                # step before left them. It ends the program when it has seen enough, so its exit code says nothing.
                limited 100 ncu --csv --print-units base --clock-control none \
                    --cache-control none --metrics gpu__time_duration.sum,dram__bytes.sum --kill yes \
                    --launch-skip $((200 * (8 * layers + 6))) --launch-count $((2 * (8 * layers + 6))) --log-file "$name.csv" \
                    "$drift" "${run[@]}" >"$name.txt" 2>&1
                printf '\n%s, batch %s, %s\n\n' "$shape" "$batch" $engine
                try 30 python3 tests/benches/kernel_times.py "$name.csv" | tee "$name.md"
            done
        done
    done
}

# compute-sanitizer over a short run: TOOL NAME ARGUMENT…
sanitized() {
    local tool=$1 name=$out/$1-$2
    shift 2
    # What cuBLAS asks the driver in vain is no error of a program.
    try 150 compute-sanitizer --tool "$tool" --report-api-errors no --log-file "$name.txt" "$drift" eval --quiet "$@" \
        --device "$device" --engine "${ENGINE:-drift-without-graphs}" >"$name.out" 2>&1
    printf '%s: %s\n' "${name##*/}" "$(tail -n 1 "$name.txt")"
    grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$name.txt" || { fail "${name##*/}"; grep -m 12 '=====' "$name.txt"; }
}

sanitizer() {
    local tool lp shape
    for tool in ${TOOLS-memcheck racecheck synccheck initcheck}; do
        for lp in automaton none; do
            sanitized $tool small-$lp --model eval/qwen-like --samples 2 --batch 2 --lp $lp --max-new-tokens 40
        done
    done
    for shape in $shapes; do
        sanitized memcheck "$shape" --synthetic "$shape" --samples 4 --batch 4 --lp automaton,none --max-new-tokens 24
        sanitized racecheck "$shape" --synthetic "$shape" --samples 4 --batch 4 --lp automaton --max-new-tokens 16
    done
    ENGINE=drift-cublas sanitized memcheck cublas --model eval/qwen-like --samples 2 --batch 2 --lp automaton,none --max-new-tokens 40
}

# Whether a seed gives the same text each time, with graphs or without.
again() {
    local time engine first
    # Few rows have the most parts that one block merges for others.
    for time in 1 2 3; do
        for engine in drift drift-without-graphs drift-cublas; do
            try 60 "$drift" eval --quiet --synthetic qwen3-0.6b --samples 2 --batch 2 --preset greedy --lp none --max-new-tokens 600 \
                --device "$device" --engine $engine --texts "$out/again-$engine-$time.jsonl" >"$out/again-$engine-$time.txt" || continue
            # Graph or not, the sums are the same; those of other products are not.
            first=$out/again-${engine%-without-graphs}-1.jsonl
            cmp "$first" "$out/again-$engine-$time.jsonl" || fail "other texts than at first: $engine, $time"
        done
    done
}

# The libraries of CUDA that come with PyPI's packages, torch's say, where the system has none.
libraries=$(ldd "$drift" || true)
if [ "$device" != cpu ] && [[ $libraries == *'not found'* ]]; then
    packages=$(python3 -c 'import glob, site
print(":".join(p for s in site.getsitepackages() for p in sorted(glob.glob(s + "/nvidia/*/lib"))))')
    export LD_LIBRARY_PATH=$packages:/usr/local/cuda/lib64:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
for part in $parts; do
    printf '\n## %s\n\n' "$part"
    "$part"
done
if [ -s "$out/failed.txt" ]; then
    printf '\n%s failures\n' "$(wc -l <"$out/failed.txt")"
    exit 1
fi
