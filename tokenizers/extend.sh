#!/usr/bin/env bash
# Makes the extended tokenizers of this folder again, and with the folder of the real ones the reports in recipes/.
#
#     tokenizers/extend.sh [REAL]      REAL holds qwen3-custom/ and llama-3.2-chem/
#
# A run is one or two CPU minutes, for every number is encoded in every context.
set -euo pipefail
real=$(realpath "${1:-/nowhere}" 2>/dev/null || true)
cd "$(dirname "${BASH_SOURCE[0]}")"
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT

# The program, built here: BASE KIND TOKENS RANGE.
extend() {
    cargo run --quiet --release -- train-tokenizer --base "$1" --kind "$2" --tokens-per-block "$3" --range "$4" \
        --quiet -o "$made" >/dev/null
}

for base in qwen-like llama-like; do
    for way in 'separate 11' 'fused 9'; do
        read -r kind tokens <<<"$way"
        extend "$base" "$kind" "$tokens" 20
        mkdir -p "$base-$kind"
        cp "$made"/{tokenizer.json,tokenizer_config.json,new_tokens.json} "$base-$kind/"
    done
done
[ -d "$real" ] || exit 0
mkdir -p recipes
for base in qwen3-custom llama-3.2-chem; do
    for way in 'fused 9' 'separate 11' 'fused 6'; do
        read -r kind tokens <<<"$way"
        extend "$real/$base" "$kind" "$tokens" 15
        cp "$made/report.json" "recipes/$base-$kind-$tokens.json"
    done
done
