#!/usr/bin/env bash
# Trains the reference checkpoints again, as eval/README.md lists them: bash eval/train.sh OUT [NAME…]
# About 55 core minutes each, small-bins 2 hours 30 minutes. What is finished in OUT is not made again, and what was stopped goes on.
# All but `llama-like` make their corpus first, in about 40 core minutes (corpora/requirements.txt); QM9_TEST is a CSV of molecules to
# leave out, GeoMol's data/QM9/test_smiles.csv.
set -euo pipefail
out=$(realpath -m "${1:?usage: eval/train.sh OUT [NAME...]}")
shift
QM9_TEST=${QM9_TEST:+$(realpath "$QM9_TEST")}
cd "$(dirname "$0")/.."

# Trains NAME, unless it is finished: NAME option…
model() {
    local name=$1 resume=()
    shift
    if grep -qs '"finished": true' "$out/$name/recipe.json"; then
        return
    fi
    if [ -f "$out/$name/training.safetensors" ]; then
        resume=(--resume)
    fi
    drift train-model --batch-tokens 4096 "$@" -o "$out/$name" "${resume[@]}"
}

drug_like=(--corpus corpora/default.jsonl.gz corpora/training.jsonl.gz --copy-weight 3)

train() { # name architecture tokenizer outline-steps steps
    model "$1" "${drug_like[@]}" --arch "$2" --tokenizer "$3" --hidden 192 --layers 4 --heads 4 --kv-heads 2 --head-dim 48 \
        --intermediate 512 --outline-steps "$4" --steps "$5" --learning-rate 3e-3 --warmup 100
}

# Goes on where each conformer is shaken a little whenever it is seen, so that exact planes are no texts of their own.
go_on() { # name from
    model "$1" "${drug_like[@]}" --init "$out/$2" --steps 1000 --learning-rate 2e-3 --warmup 50 --optimizer muon --noise 0.005 --seed 1
}

# The corpus of small molecules, with which models of this size learn 3D.
small_corpus() {
    if [ ! -f "$out/small-train.jsonl.gz" ]; then
        python3 corpora/small.py train --out "$out" ${QM9_TEST:+--exclude "$QM9_TEST"}
    fi
}

# What differs in nothing but its text: name tokenizer steps option...
small() {
    local name=$1 tokenizer=$2 steps=$3
    shift 3
    small_corpus
    model "$name" --corpus "$out/small-train.jsonl.gz" --arch qwen3 --tokenizer "$tokenizer" --heads 4 --kv-heads 2 --steps "$steps" \
        --learning-rate 3e-3 --optimizer muon --noise 0.002 "$@"
}
wide=(--hidden 192 --layers 5 --head-dim 48 --intermediate 512)
narrow=(--hidden 128 --layers 4 --head-dim 32 --intermediate 352)

# Makes the tokenizer NAME, unless it is there, and prints where: NAME option…
extended() {
    local folder=$out/$1
    shift
    if [ ! -f "$folder/tokenizer.json" ]; then
        drift train-tokenizer --base qwen-like "$@" -o "$folder" --quiet >&2
    fi
    printf '%s' "$folder"
}

bins=binned-v2:-9.525,9.525,0.05

# As qwen-like, but for bins and the frame.
small_bins_begun() {
    small small-bins-begun "$(extended small-bins-tokenizer --encoding "$bins" --tokens-per-block 4)" 3000 "${wide[@]}" --frame first-atoms --encoding "$bins"
}

# The shipped one: the same corpus, three times as long in all.
small_bins() {
    small_bins_begun
    model small-bins --corpus "$out/small-train.jsonl.gz" --init "$out/small-bins-begun" --steps 6000 --learning-rate 1.5e-3 --warmup 100 \
        --optimizer muon --noise 0.002 --seed 1 --frame first-atoms --encoding "$bins"
}

# One of six that differ in nothing but how coordinates are written: name
by_encoding() {
    local tokenizer encoding=fixed
    case $1 in
        by-fixed) tokenizer=qwen-like ;;
        by-separate) tokenizer=$(extended tok-separate --kind separate --tokens-per-block 11) ;;
        by-fused) tokenizer=$(extended tok-fused --kind fused --tokens-per-block 9) ;;
        by-two) encoding=fixed-2 tokenizer=$(extended tok-two --encoding fixed-2 --kind fused --tokens-per-block 7) ;;
        by-bins) encoding=$bins tokenizer=$(extended small-bins-tokenizer --encoding "$bins" --tokens-per-block 4) ;;
        by-uniform)
            encoding=$out/uniform256.json
            python3 -c 'import json
edges = [-9.6 + 19.2 * at / 256 for at in range(257)]
print(json.dumps({"mode": "uniform", "L": -9.6, "H": 9.6, "n_bins": 256, "edges": edges}))' >"$encoding"
            tokenizer=$(extended tok-uniform --encoding "$encoding" --tokens-per-block 4)
            ;;
    esac
    small "$1" "$tokenizer" 1500 "${narrow[@]}" --frame first-atoms --encoding "$encoding"
}

mkdir -p "$out"
# candle asks for the number of processors around each product unless it is set; training is on threads of its own.
export RAYON_NUM_THREADS=${RAYON_NUM_THREADS:-2}
for name in "${@:-qwen-like}"; do
    case $name in
        # The third and fourth decimals are nearly random: with their whole weight the others are learned later.
        qwen-like) small qwen-like qwen-like 3600 "${wide[@]}" --fine-weight 0.2 ;;
        # Not shipped: differs from qwen-like in nothing but the frame.
        first-atoms) small first-atoms qwen-like 3600 "${wide[@]}" --fine-weight 0.2 --frame first-atoms ;;
        llama-like) train $name-begun llama llama-like 600 3000 && go_on $name $name-begun ;;
        small-bins-begun) small_bins_begun ;;
        small-bins) small_bins ;;
        by-fixed | by-separate | by-fused | by-two | by-bins | by-uniform) by_encoding "$name" ;;
        *) echo "no recipe for $name" >&2; exit 2 ;;
    esac
done
