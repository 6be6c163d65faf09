#!/usr/bin/env bash
# What needs a GPU: bash eval/gpu.sh DRIFT OUT, where DRIFT was built with --features cuda. In this order, or those that PARTS names:
#   texts   greedy texts in f32 beside the CPU's, of the reference checkpoints and of random weights of the users' shapes, by every
#           engine: which are the same, where others first differ, and by how much the best logit led there
#   tables  the tables of the reference checkpoints in bf16: junk, lost digits, likelihood
#   speed   the users' shapes by every engine at each batch, two texts for each row of it
#   peers   the users' shapes beside transformers with a processor in Python (needs torch and transformers)
# and, of PARTS alone, what the constants of the kernels are chosen by:
#   products   products of a step by cuBLAS and cuBLASLt, weights as [out, in] and [in, out] (needs torch)
#   kernels    time and bytes of each kernel (needs ncu of Nsight Compute)
#   sanitizer  compute-sanitizer over short runs: accesses out of bounds, races in shared memory
# SAMPLES, GENERATIONS, COMPARED, BATCHES, SHAPES and MODELS make it shorter; DEVICE=cpu tries the script itself.
set -euo pipefail
drift=$(realpath "${1:?usage: eval/gpu.sh DRIFT OUT}")
mkdir -p "${2:?usage: eval/gpu.sh DRIFT OUT}"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
device=${DEVICE:-cuda:0} samples=${SAMPLES:-201} generations=${GENERATIONS:-5} batches=${BATCHES-1 8 32 128}
shapes=${SHAPES-qwen3-0.6b llama-380m} models=${MODELS-qwen-like llama-like qwen-like-separate}
# The libraries of CUDA that come with PyPI's packages, torch's say, where the system has none.
if [ "$device" != cpu ] && ldd "$drift" | grep -q 'not found'; then
    packages=$(python3 -c 'import glob, site
print(":".join(p for s in site.getsitepackages() for p in sorted(glob.glob(s + "/nvidia/*/lib"))))')
    export LD_LIBRARY_PATH=$packages${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
engines='drift drift-without-graphs candle'
# The CPU has no graphs.
[ "$device" != cpu ] || engines='drift candle'

# Sets greedy texts beside those of the CPU: NAME ARGUMENT…
beside_the_cpu() {
    local name=$1 engine record greedy
    shift
    greedy=(eval --quiet "$@" --preset greedy --lp none,automaton --dtype f32)
    "$drift" "${greedy[@]}" --texts "$out/$name-cpu.jsonl" >/dev/null
    for engine in $engines; do
        record=$out/$name-f32-$engine
        "$drift" "${greedy[@]}" --device "$device" --engine $engine --same-as "$out/$name-cpu.jsonl" -o "$record" >"$record.txt"
        sed -n '/^beside /,/^$/p' "$record.txt" | sed "s/^beside/$name, $engine, greedy, f32, $device: beside/"
    done
}

texts() {
    local model shape
    for model in $models; do
        beside_the_cpu "$model" --model "eval/$model" --samples "$samples"
    done
    for shape in $shapes; do
        beside_the_cpu "$shape" --synthetic "$shape" --samples "${COMPARED:-4}" --max-new-tokens 160
    done
}

tables() {
    local model
    for model in $models; do
        "$drift" eval --quiet --model "eval/$model" --samples "$samples" --generations "$generations" --device "$device" \
            --likelihood --placeholder 0.0000,0.0000,0.0000 --placeholder 0.000,0.000,0.000 -o "$out/$model"
    done
}

speed() {
    local shape batch engine
    for shape in $shapes; do
        for batch in $batches; do
            for engine in $engines; do
                "$drift" eval --quiet --synthetic "$shape" --samples $((2 * batch)) --lp none,allowlist,automaton \
                    --device "$device" --batch "$batch" --engine "$engine" -o "$out/$shape-$batch-$engine"
            done
        done
    done
}

peers() {
    local shape
    for shape in $shapes; do
        python3 tests/benches/real_size.py "$drift" --shape "$shape" --device "$device" --batches $batches \
            --tokens "${TOKENS:-400}" --dtypes bf16 | tee "$out/$shape-peers.md"
    done
}

products() {
    python3 tests/benches/gpu_products.py --device "$device" --shape $shapes | tee "$out/products.md"
}

kernels() {
    local shape batch run layers
    for shape in $shapes; do
        layers=28
        [ "$shape" != llama-380m ] || layers=16
        for batch in $batches; do
            # A few steps, behind 200 others of eight launches a layer: those of a longer context.
            run=(eval --quiet --synthetic "$shape" --samples $((4 * batch)) --batch "$batch" --device "$device"
                --lp automaton --engine drift-without-graphs --max-new-tokens "${TOKENS:-400}")
            ncu --csv --print-units base --clock-control none --metrics gpu__time_duration.sum,dram__bytes.sum \
                --launch-skip $((200 * (8 * layers + 6))) --launch-count 2000 --log-file "$out/$shape-$batch-kernels.csv" "$drift" "${run[@]}" >/dev/null
            echo "$shape, batch $batch"
            python3 tests/benches/kernel_times.py "$out/$shape-$batch-kernels.csv" | tee "$out/$shape-$batch-kernels.md"
        done
    done
}

sanitizer() {
    local tool lp
    for tool in memcheck racecheck; do
        for lp in automaton none; do
            compute-sanitizer --tool $tool --error-exitcode 1 --log-file "$out/$tool-$lp.txt" "$drift" eval --quiet \
                --model eval/qwen-like --samples 2 --batch 2 --lp $lp --device "$device" --engine drift-without-graphs \
                --max-new-tokens 40 >/dev/null
            tail -n 1 "$out/$tool-$lp.txt"
        done
    done
}

for part in ${PARTS-texts tables speed peers}; do
    "$part"
done
