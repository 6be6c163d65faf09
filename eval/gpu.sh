#!/usr/bin/env bash
# What needs a GPU: bash eval/gpu.sh DRIFT OUT, where DRIFT was built with --features cuda. In this order, or those that PARTS names:
#   texts   greedy texts in f32 beside the CPU's, of the reference checkpoints and of random weights of the users' shapes, by every
#           engine: which are the same, where others first differ, and by how much the best logit led there
#   tables  the tables of the reference checkpoints in bf16: junk, lost digits, likelihood
#   speed   the users' shapes by every engine at each batch, two texts for each row of it
# SAMPLES, GENERATIONS, COMPARED, BATCHES, SHAPES and MODELS make it shorter; DEVICE=cpu tries the script itself.
set -euo pipefail
drift=$(realpath "${1:?usage: eval/gpu.sh DRIFT OUT}")
mkdir -p "${2:?usage: eval/gpu.sh DRIFT OUT}"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
device=${DEVICE:-cuda:0} samples=${SAMPLES:-201} generations=${GENERATIONS:-5} batches=${BATCHES-1 8 32 128}
shapes=${SHAPES-qwen3-0.6b llama-380m} models=${MODELS-qwen-like llama-like qwen-like-separate}
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

for part in ${PARTS-texts tables speed}; do
    "$part"
done
