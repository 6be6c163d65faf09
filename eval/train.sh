#!/usr/bin/env bash
# Trains the reference checkpoints again, as eval/README.md lists them: bash eval/train.sh OUT [NAME…]
# About 55 core minutes each; `small-bins`, by-ENCODING-SEED and carried-ENCODING-SEED want a GPU for minutes (torch, transformers,
# tokenizers). What is finished in OUT is not made again, and what was stopped goes on. All but `llama-like` make their corpus first, in
# about 40 core minutes (corpora/requirements.txt); QM9_TEST is a CSV of molecules to leave out, GeoMol's data/QM9/test_smiles.csv.
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

# Not shipped: three times as long in all, 2 hours 30 minutes of a core.
small_bins_longer() {
    small_bins_begun
    model small-bins-longer --corpus "$out/small-train.jsonl.gz" --init "$out/small-bins-begun" --steps 6000 --learning-rate 1.5e-3 \
        --warmup 100 --optimizer muon --noise 0.002 --seed 1 --frame first-atoms --encoding "$bins"
}

# The shipped one: 30 times as long, on a GPU, each molecule in eight orders of its atoms; then drift goes on for a minute, which moves
# its weights little, and writes its recipe.
small_bins() {
    small_corpus
    if [ ! -f "$out/small-bins-gpu/recipe.json" ]; then
        python3 eval/train_gpu.py prepare "$out/small-train.jsonl.gz" eval/small-bins -o "$out/small-bins.npz"
        python3 eval/train_gpu.py train "$out/small-bins.npz" eval/small-bins --longest 104 --steps 14106 -o "$out/small-bins-gpu"
    fi
    model small-bins --corpus "$out/small-train.jsonl.gz" --init "$out/small-bins-gpu" --steps 50 --learning-rate 1e-5 --warmup 5 \
        --optimizer muon --noise 0.002 --seed 2 --frame first-atoms --encoding "$bins"
}

# Sets `tokenizer` and `encoding` of one of six that differ in nothing but how coordinates are written: name
written_by() {
    encoding=fixed
    case $1 in
        by-fixed) tokenizer=tokenizers/qwen-like ;;
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
        *) echo "no recipe for $1" >&2; exit 2 ;;
    esac
}

# One of the six, on a core: name
by_encoding() {
    written_by "$1"
    small "$1" "$tokenizer" 1500 "${narrow[@]}" --frame first-atoms --encoding "$encoding"
}

# The texts of one of the six for a GPU, and an untrained folder with its tokenizer and shape: name
texts_of() {
    local folder=$out/$1-untrained
    [ ! -f "$out/$1.npz" ] || return 0
    small_corpus
    written_by "$1"
    # drift shakes a conformer anew each time; here each is shaken once.
    if [ ! -f "$out/shaken.jsonl" ]; then
        python3 - "$out/small-train.jsonl.gz" "$out/shaken.jsonl" <<'P'
import gzip, json, re, sys
import numpy as np
draw = np.random.default_rng(1)
def shaken(block):
    numbers = (f"{float(number) + 0.002 * draw.standard_normal():.4f}" for number in block[1].split(","))
    return "<" + ",".join(numbers).replace("-0.0000", "0.0000") + ">"
with gzip.open(sys.argv[1], "rt") as rows, open(sys.argv[2], "w") as out:
    for row in map(json.loads, rows):
        row["embedded_smiles"] = re.sub(r"<([^<>]*)>", shaken, row["embedded_smiles"])
        out.write(json.dumps(row) + "\n")
P
    fi
    mkdir -p "$folder"
    cp "$tokenizer/tokenizer.json" eval/small-bins/{config,generation_config,tokenizer_config}.json "$folder"
    python3 - "$folder" <<'P'
import json, sys
from tokenizers import Tokenizer
config = json.load(open(f"{sys.argv[1]}/config.json"))
rows = Tokenizer.from_file(f"{sys.argv[1]}/tokenizer.json").get_vocab_size()
config.update(hidden_size=128, num_hidden_layers=4, head_dim=32, intermediate_size=352, vocab_size=rows)
json.dump(config, open(f"{sys.argv[1]}/config.json", "w"), indent=1)
P
    drift encode "$out/shaken.jsonl" --frame first-atoms --encoding "$encoding" -o "$out/$1.jsonl" --quiet
    python3 eval/train_gpu.py documents "$out/$1.jsonl" "$folder" --encoding "$encoding" --frame first-atoms -o "$out/$1.npz"
}

# One of the six, on a GPU, with five times as many tokens: name seed
by_encoding_on_gpu() {
    [ ! -f "$out/$1-$2/recipe.json" ] || return 0
    texts_of "$1"
    python3 eval/train_gpu.py train "$out/$1.npz" "$out/$1-untrained" --batch-tokens 40000 --steps 700 --warmup 50 --every 20 --seed "$2" \
        -o "$out/$1-$2"
}

# The model of decimals carried on to one of the other tokenizers, on a GPU: name seed
carried() {
    [ ! -f "$out/carried-$1-$2/recipe.json" ] || return 0
    by_encoding_on_gpu by-fixed "$2"
    texts_of "$1"
    [ -d "$out/extended-$1-$2" ] ||
        drift extend-model --model "$out/by-fixed-$2" --tokenizer "$out/$1-untrained" --init mean -o "$out/extended-$1-$2"
    python3 eval/train_gpu.py train "$out/$1.npz" "$out/extended-$1-$2" --init --batch-tokens 40000 --steps 300 --warmup 50 --every 2 \
        --seed "1$2" -o "$out/carried-$1-$2"
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
        small-bins-longer) small_bins_longer ;;
        small-bins) small_bins ;;
        carried-by-*-[0-9]) name=${name#carried-} && carried "${name%-*}" "${name##*-}" ;;
        by-*-[0-9]) by_encoding_on_gpu "${name%-*}" "${name##*-}" ;;
        by-*) by_encoding "$name" ;;
        *) echo "no recipe for $name" >&2; exit 2 ;;
    esac
done
