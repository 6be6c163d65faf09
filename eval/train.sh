#!/usr/bin/env bash
# Trains the reference checkpoints again, as eval/README.md lists them: bash eval/train.sh OUT [NAME…]
# About 55 core minutes each; stopped runs go on where they were with RESUME=--resume.
set -euo pipefail
out=${1:?usage: eval/train.sh OUT [NAME...]}
shift
cd "$(dirname "$0")/.."

train() { # name architecture tokenizer outline-steps steps
    drift train-model --arch "$2" --tokenizer "$3" --corpus corpora/default.jsonl.gz corpora/training.jsonl.gz \
        --hidden 192 --layers 4 --heads 4 --kv-heads 2 --head-dim 48 --intermediate 512 \
        --outline-steps "$4" --steps "$5" --batch-tokens 4096 --learning-rate 3e-3 --warmup 100 --copy-weight 3 \
        -o "$out/$1" ${RESUME:-}
}

# Goes on where each conformer is shaken a little whenever it is seen, so that exact planes are no texts of their own.
go_on() { # name from
    drift train-model --init "$out/$2" --corpus corpora/default.jsonl.gz corpora/training.jsonl.gz \
        --steps 1000 --batch-tokens 4096 --learning-rate 2e-3 --warmup 50 --copy-weight 3 \
        --optimizer muon --noise 0.005 --seed 1 -o "$out/$1" ${RESUME:-}
}

# candle asks for the number of processors around each product unless it is set; training is on threads of its own.
export RAYON_NUM_THREADS=${RAYON_NUM_THREADS:-2}
for name in "${@:-qwen-like}"; do
    case $name in
        qwen-like) train $name-begun qwen3 qwen-like 800 3000 && go_on $name $name-begun ;;
        llama-like) train $name-begun llama llama-like 600 3000 && go_on $name $name-begun ;;
        qwen-like-separate) train $name-begun qwen3 qwen-like-separate 800 3000 && go_on $name $name-begun ;;
        # As many passes over the data as qwen-like, with fewer tokens: what eval/README.md compares.
        qwen-like-separate-passes) train $name qwen3 qwen-like-separate 480 1800 ;;
        *) echo "no recipe for $name" >&2; exit 2 ;;
    esac
done
