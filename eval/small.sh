#!/usr/bin/env bash
# Trains the checkpoint of small molecules again, and evaluates it: bash eval/small.sh OUT
# About 40 core minutes for the corpus and an hour of one core for the training. What is finished in OUT is not made again, and what was
# stopped goes on. Needs corpora/requirements.txt; QM9_TEST is GeoMol's data/QM9/test_smiles.csv, whose molecules are left out.
set -euo pipefail
out=$(realpath -m "${1:?usage: eval/small.sh OUT}")
cd "$(dirname "$0")/.."
encoding=binned-v2:-6.5,6.5,0.05
mkdir -p "$out"

if [ ! -f "$out/small-train.jsonl.gz" ]; then
    python3 corpora/small.py train --out "$out" ${QM9_TEST:+--exclude "$QM9_TEST"}
fi
if [ ! -f "$out/tokenizer/tokenizer.json" ]; then
    drift train-tokenizer --base qwen-like --encoding "$encoding" --tokens-per-block 4 -o "$out/tokenizer"
fi
resume=()
if [ -f "$out/small-bins/training.safetensors" ]; then
    resume=(--resume)
fi
if ! grep -qs '"finished": true' "$out/small-bins/recipe.json"; then
    drift train-model --corpus "$out/small-train.jsonl.gz" --arch qwen3 --encoding "$encoding" --tokenizer "$out/tokenizer" \
        --hidden 192 --layers 5 --heads 4 --kv-heads 2 --head-dim 48 --intermediate 512 \
        --optimizer muon --learning-rate 3e-3 --noise 0.002 --batch-tokens 4096 --steps 3000 --threads 1 \
        -o "$out/small-bins" "${resume[@]}"
fi
drift eval --model "$out/small-bins" --corpus corpora/small.jsonl.gz --generations 4 --lp none,automaton -o "$out/record"
