#!/usr/bin/env bash
# Trains the reference checkpoints again, as eval/README.md lists them: bash eval/train.sh OUT [NAME…]
# About 55 core minutes each; `small-bins`, by-ENCODING-SEED and carried-ENCODING-SEED want a GPU for minutes (torch, transformers,
# tokenizers). What is finished in OUT is not made again, and what was stopped goes on. All but `llama-like` make their corpus first, in
# about 40 core minutes (corpora/requirements.txt); QM9_TEST is a CSV of molecules to leave out, GeoMol's data/QM9/test_smiles.csv,
# GEOM a folder with those that `drugs-bins` leaves out (`drugs_made`).
set -euo pipefail
out=$(realpath -m "${1:?usage: eval/train.sh OUT [NAME...]}")
shift
QM9_TEST=${QM9_TEST:+$(realpath "$QM9_TEST")} GEOM=${GEOM:+$(realpath "$GEOM")}
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

# Drug-like molecules, without those of the files in GEOM, a folder, if it is given: FOLDER MOLECULES
drugs_made() {
    local name excluded=()
    for name in drugs_test_smiles.csv geom_conformers.jsonl etkdg_drugs_test.jsonl.gz xtb_moses_aq.jsonl.gz; do
        [ -z "${GEOM-}" ] || excluded+=(--exclude "$GEOM/$name")
    done
    [ -f "$1/drugs.json" ] || python3 corpora/drugs.py --work "$1" --molecules "$2" "${excluded[@]}"
}

# The corpus of drug-like molecules: DRUGS_CORPUS, a folder where it was made before, or made here in an hour of two cores.
drugs_corpus() {
    drugs=${DRUGS_CORPUS:-$out/drugs}
    drugs_made "$drugs" "${DRUGS_MOLECULES:-100000}"
}

# Its first 42,668 conformers.
drugs_part() {
    drugs_corpus
    [ -f "$out/drugs-part.jsonl.gz" ] || python3 - "$drugs/drugs-train.jsonl.gz" "$out/drugs-part.jsonl.gz" <<'P'
import gzip, itertools, sys
with gzip.open(sys.argv[1], "rb") as rows, gzip.open(sys.argv[2], "wb") as out:
    out.writelines(itertools.islice(rows, 42_668))
P
}

# The untrained folder of NAME, with a tokenizer's files and the shape of a model; it comes last: NAME tokenizer JSON of the fields of config.json
untrained() {
    local folder=$out/$1-untrained
    mkdir -p "$folder"
    cp "$2/tokenizer.json" eval/small-bins/{generation_config,tokenizer_config}.json "$folder"
    python3 - eval/small-bins/config.json "$folder" "$3" <<'P'
import json, sys
from tokenizers import Tokenizer
config, folder, fields = json.load(open(sys.argv[1])), sys.argv[2], json.loads(sys.argv[3])
rows = Tokenizer.from_file(f"{folder}/tokenizer.json").get_vocab_size()
json.dump({**config, **fields, "vocab_size": rows}, open(f"{folder}/config.json", "w"), indent=1)
P
}

# Packs and unpacks OUT/DATA.npz, unless that was done: data
packed() { [ -f "$out/$1.npz.xz" ] || xz -k -T0 "$out/$1.npz"; }
unpacked() { [ -f "$out/$1.npz" ] || [ ! -f "$out/$1.npz.xz" ] || xz -dk "$out/$1.npz.xz"; }

# Trains NAME on OUT/DATA.npz, which is unpacked if only OUT/DATA.npz.xz is there: name data steps option...
on_gpu() {
    local name=$1 data=$2 steps=$3
    shift 3
    unpacked "$data"
    python3 eval/train_gpu.py train "$out/$data.npz" "$out/$name-untrained" --steps "${STEPS:-$steps}" --batch-tokens "${BATCH_TOKENS:-80000}" \
        --keep-state --save-seconds 60 -o "$out/$name-gpu" "$@" ${GPU_OPTIONS:-}
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

wide_bins=binned-v2:-21.025,21.025,0.05

# Drug-like molecules in the tokens of a tokenizer, each in four orders of its atoms: NAME CORPUS TOKENIZER
drugs_data() {
    [ -f "$out/$1.npz" ] || python3 eval/train_gpu.py prepare "$2" "$3" --encoding "$wide_bins" --orders 4 -o "$out/$1.npz"
}

# What a GPU needs for drugs-bins, and nothing else: 8 million weights, each molecule in four orders of its atoms.
drugs_bins_prepared() {
    [ ! -f "$out/drugs-bins-untrained/config.json" ] || return 0
    drugs_corpus
    local tokenizer
    tokenizer=$(extended drugs-bins-tokenizer --encoding "$wide_bins" --tokens-per-block 4)
    drugs_data drugs-bins "$drugs/drugs-train.jsonl.gz" "$tokenizer"
    packed drugs-bins
    untrained drugs-bins "$tokenizer" '{"hidden_size": 320, "num_hidden_layers": 6, "num_attention_heads": 5, "num_key_value_heads": 1,
        "head_dim": 64, "intermediate_size": 960}'
}

drugs_bins_on_gpu() {
    drugs_bins_prepared
    on_gpu drugs-bins drugs-bins 20000 --longest 320 --buckets 3 --learning-rate 3e-3
}

# Goes on with drug-like molecules, on a core, or on as many as CORES says: name data from steps option...
on_core() {
    local name=$1 data=$2 from=$3 steps=$4
    shift 4
    [ ! -f "$out/$name/finished" ] || return 0
    OMP_NUM_THREADS=1 python3 -m torch.distributed.run --nproc-per-node "${CORES:-1}" eval/train_gpu.py train "$out/$data.npz" "$out/$from" \
        --init --device cpu --steps "${STEPS:-$steps}" --batch-tokens 6000 --longest 320 --buckets 4 --warmup 100 --every 50 --keep-state --save-seconds 300 -o "$out/$name" "$@"
    touch "$out/$name/finished"
}

# The shipped one: small-bins with farther bins goes on with drug-like molecules four times, in five hours of a core, the fourth time with
# all of the corpus, and twice more, in two hours of two cores; then drift goes on for a minute, which moves its weights little,
# and writes its recipe. (The fifth part of the shipped one began behind another such minute, and its schedule was shortened on the way.)
drugs_bins() {
    drugs_corpus
    local tokenizer
    tokenizer=$(extended drugs-bins-tokenizer --encoding "$wide_bins" --tokens-per-block 4)
    drugs_part
    drugs_data drugs-part "$out/drugs-part.jsonl.gz" "$tokenizer"
    [ -f "$out/drugs-bins-wide/config.json" ] ||
        python3 eval/train_gpu.py widen eval/small-bins "$tokenizer" --encoding "$wide_bins" -o "$out/drugs-bins-wide"
    on_core drugs-bins-core drugs-part drugs-bins-wide 2409 --learning-rate 2e-3
    on_core drugs-bins-core-2 drugs-part drugs-bins-core 3850 --learning-rate 2e-3 --seed 3
    on_core drugs-bins-core-3 drugs-part drugs-bins-core-2 1091 --learning-rate 1.2e-3 --falling 1 --seed 5
    drugs_data drugs-bins "$drugs/drugs-train.jsonl.gz" "$tokenizer"
    on_core drugs-bins-core-4 drugs-bins drugs-bins-core-3 3501 --batch-tokens 8000 --learning-rate 1.5e-3 --falling 1 --seed 7
    # A smaller corpus by the same script: its molecules are others in part, and it holds out the scaffolds of the other's test part, too.
    drugs_made "$out/drugs-again" 40000
    drugs_data drugs-again "$out/drugs-again/drugs-train.jsonl.gz" "$tokenizer"
    CORES=2 on_core drugs-bins-core-5 drugs-again drugs-bins-core-4 7640 --batch-tokens 8000 --learning-rate 1.5e-3 --falling 1 --seed 11
    CORES=2 on_core drugs-bins-core-6 drugs-again drugs-bins-core-5 2300 --batch-tokens 8000 --learning-rate 6e-4 --falling 1 --seed 13
    model drugs-bins --corpus "$drugs/drugs-train.jsonl.gz" --init "$out/drugs-bins-core-6" --steps 50 --learning-rate 1e-5 --warmup 5 \
        --optimizer muon --noise 0.002 --seed 2 --frame first-atoms --encoding "$wide_bins"
}

# qwen-like anew: four decimals in the base's tokens, principal axes, as many updates as small-bins.
qwen_like_prepared() {
    [ ! -f "$out/qwen-like-untrained/config.json" ] || return 0
    small_corpus
    [ -f "$out/qwen-like.npz" ] ||
        python3 eval/train_gpu.py documents "$out/small-train.jsonl.gz" eval/qwen-like --copies "${COPIES:-8}" -o "$out/qwen-like.npz"
    packed qwen-like
    untrained qwen-like eval/qwen-like '{}'
}

qwen_like_gpu() {
    qwen_like_prepared
    on_gpu qwen-like qwen-like 14106 --longest 288 --buckets 2 --fine-weight "${FINE_WEIGHT:-0.2}"
}

# Sets `encoding` and `tokenizer` of equal bins between -REACH and REACH, 0.075 Å each: tokenizer bins reach
uniform() {
    encoding=$out/uniform$2.json
    python3 - "$2" "$3" >"$encoding" <<'P'
import json, sys
bins, reach = int(sys.argv[1]), float(sys.argv[2])
edges = [-reach + 2 * reach * at / bins for at in range(bins + 1)]
print(json.dumps({"mode": "uniform", "L": -reach, "H": reach, "n_bins": bins, "edges": edges}))
P
    tokenizer=$(extended "$1" --encoding "$encoding" --tokens-per-block 4)
}

# Sets `tokenizer` and `encoding` of one of six that differ in nothing but how coordinates are written: name. Those of drug-like molecules
# reach farther.
written_by() {
    encoding=fixed
    case $1 in
        by-fixed) tokenizer=tokenizers/qwen-like ;;
        by-separate) tokenizer=$(extended tok-separate --kind separate --tokens-per-block 11) ;;
        by-fused) tokenizer=$(extended tok-fused --kind fused --tokens-per-block 9) ;;
        by-two) encoding=fixed-2 tokenizer=$(extended tok-two --encoding fixed-2 --kind fused --tokens-per-block 7) ;;
        by-bins) encoding=$bins tokenizer=$(extended small-bins-tokenizer --encoding "$bins" --tokens-per-block 4) ;;
        by-uniform) uniform tok-uniform 256 9.6 ;;
        drugs-by-separate) tokenizer=$(extended tok-separate-wide --kind separate --tokens-per-block 11 --range 21) ;;
        drugs-by-fused) tokenizer=$(extended tok-fused-wide --kind fused --tokens-per-block 9 --range 21) ;;
        drugs-by-two) encoding=fixed-2 tokenizer=$(extended tok-two-wide --encoding fixed-2 --kind fused --tokens-per-block 7 --range 21) ;;
        drugs-by-fixed) tokenizer=tokenizers/qwen-like ;;
        drugs-by-bins) encoding=$wide_bins tokenizer=$(extended drugs-bins-tokenizer --encoding "$wide_bins" --tokens-per-block 4) ;;
        drugs-by-uniform) uniform tok-uniform-wide 560 21 ;;
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
    unpacked "$1"
    [ ! -f "$out/$1.npz" ] || return 0
    local corpus=$out/small-train.jsonl.gz shaken=$out/shaken.jsonl
    local shape='{"hidden_size": 128, "num_hidden_layers": 4, "head_dim": 32, "intermediate_size": 352}'
    case $1 in
        drugs-*) drugs_part && corpus=$out/drugs-part.jsonl.gz shaken=$out/drugs-shaken.jsonl shape='{}' ;;
        *) small_corpus ;;
    esac
    written_by "$1"
    # drift shakes a conformer anew each time; here each is shaken once.
    if [ ! -f "$shaken" ]; then
        python3 - "$corpus" "$shaken" <<'P'
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
    untrained "$1" "$tokenizer" "$shape"
    drift encode "$shaken" --frame first-atoms --encoding "$encoding" -o "$out/$1.jsonl" --quiet
    python3 eval/train_gpu.py documents "$out/$1.jsonl" "$out/$1-untrained" --encoding "$encoding" --frame first-atoms -o "$out/$1.npz"
}

# One of the six, on a GPU: name seed. Small ones see five times as many tokens as on a core, drug-like ones 80 million.
by_encoding_on_gpu() {
    [ ! -f "$out/$1-$2/recipe.json" ] || return 0
    texts_of "$1"
    local how=(--batch-tokens "${BATCH_TOKENS:-40000}" --steps "${STEPS:-700}" --warmup 50 --every 20 --seed "$2")
    case $1 in
        drugs-*) how=(--batch-tokens "${BATCH_TOKENS:-80000}" --steps "${STEPS:-1000}" --warmup 50 --every 20 --seed "$2" --buckets 3) ;;
    esac
    python3 eval/train_gpu.py train "$out/$1.npz" "$out/$1-untrained" "${how[@]}" -o "$out/$1-$2" ${GPU_OPTIONS:-}
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
        drugs-bins-prepared) drugs_bins_prepared ;;
        drugs-bins) drugs_bins ;;
        drugs-bins-gpu) drugs_bins_on_gpu ;;
        qwen-like-prepared) qwen_like_prepared ;;
        qwen-like-gpu) qwen_like_gpu ;;
        carried-by-*-[0-9]) name=${name#carried-} && carried "${name%-*}" "${name##*-}" ;;
        drugs-by-*-prepared) name=${name%-prepared} && texts_of "$name" && packed "$name" ;;
        by-*-[0-9] | drugs-by-*-[0-9]) by_encoding_on_gpu "${name%-*}" "${name##*-}" ;;
        by-*) by_encoding "$name" ;;
        *) echo "no recipe for $name" >&2; exit 2 ;;
    esac
done
