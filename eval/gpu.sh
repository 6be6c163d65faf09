#!/usr/bin/env bash
# What needs a GPU, in one go: bash eval/gpu.sh DRIFT OUT, where DRIFT was built with --features cuda.
# Texts in f32 against those of the CPU, of the reference checkpoints (heads of 48, so by candle's operations) and of random weights
# of the users' shapes (by drift's kernels, and by candle's operations); the tables of the reference checkpoints in bf16; and the
# speed of the users' shapes by every engine. DEVICE=cpu tries the script itself; SAMPLES, GENERATIONS, COMPARED, BATCHES and SHAPES
# make it shorter.
set -euo pipefail
drift=$(realpath "${1:?usage: eval/gpu.sh DRIFT OUT}")
mkdir -p "${2:?usage: eval/gpu.sh DRIFT OUT}"
out=$(realpath "$2")
cd "$(dirname "$0")/.."
device=${DEVICE:-cuda:0} samples=${SAMPLES:-201} generations=${GENERATIONS:-5} shapes=${SHAPES-qwen3-0.6b llama-380m}
engines='drift drift-without-graphs candle'
# The CPU has no graphs.
[ "$device" != cpu ] || engines='drift candle'

# The verdict of a run beside texts of the CPU: NAME RECORD
verdict() {
    verdict "$model" "$out/$model-f32"
}

for model in qwen-like llama-like qwen-like-separate; do
    greedy=(eval --quiet --model eval/$model --samples "$samples" --preset greedy --lp none,automaton --dtype f32)
    "$drift" "${greedy[@]}" --texts "$out/$model-cpu.jsonl" >/dev/null
    # The record says which texts are those of the CPU, and where others first differ, with the lead of the best logit there.
    "$drift" "${greedy[@]}" --device "$device" --same-as "$out/$model-cpu.jsonl" -o "$out/$model-f32" \
        >"$out/$model-f32.txt"
    sed -n '/^beside /,/^$/p' "$out/$model-f32.txt" | sed "s/^beside/$model, greedy, f32, $device: beside/"
done
for shape in $shapes; do
    greedy=(eval --quiet --synthetic $shape --samples "${COMPARED:-4}" --preset greedy --lp none,automaton --dtype f32
        --max-new-tokens 160)
    "$drift" "${greedy[@]}" --texts "$out/$shape-cpu.jsonl" >/dev/null
    for engine in $engines; do
        record=$out/$shape-f32-$engine
        "$drift" "${greedy[@]}" --device "$device" --engine $engine --same-as "$out/$shape-cpu.jsonl" -o "$record" >"$record.txt"
        verdict "$shape, $engine" "$record"
    done
done
for model in qwen-like llama-like; do
    "$drift" eval --quiet --model eval/$model --samples "$samples" --generations "$generations" --device "$device" \
        --likelihood --placeholder 0.0000,0.0000,0.0000 --placeholder 0.000,0.000,0.000 -o "$out/$model"
done
for shape in $shapes; do
    for batch in ${BATCHES-1 8 32 128}; do
        for engine in $engines; do
            "$drift" eval --quiet --synthetic $shape --samples "$samples" --lp none,allowlist,automaton --device "$device" \
                --batch $batch --engine $engine -o "$out/$shape-$batch-$engine"
        done
    done
done
