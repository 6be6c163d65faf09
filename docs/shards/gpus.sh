#!/usr/bin/env bash
# A shard on each GPU of a node, then the merge: bash gpus.sh GPUS OUT verb option…
# Without a GPU, shards as processes of their own. The same command goes on with what was stopped.
set -euo pipefail
gpus=$1 out=$2
shift 2
mkdir -p "$out/shards" "$out/logs"
running=()
for ((i = 1; i <= gpus; i++)); do
    CUDA_VISIBLE_DEVICES=$((i - 1)) drift "$@" --shard "$i/$gpus" -o "$out/shards/$i" &>"$out/logs/$i.txt" &
    running+=($!)
done
for one in "${running[@]}"; do
    wait "$one" || { tail -n 3 "$out"/logs/*.txt >&2; exit 1; }
done
drift merge "$out"/shards/*/ -o "$out/merged"
