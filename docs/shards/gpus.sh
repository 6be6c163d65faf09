#!/usr/bin/env bash
# A shard on each GPU of a node, then the merge: bash gpus.sh GPUS OUT verb option…
# The GPUs are those of CUDA_VISIBLE_DEVICES, if it is set. Without a GPU, shards as processes of their own. If one fails, or on Ctrl-C,
# all stop; the same command goes on.
set -euo pipefail
gpus=$1 out=$2
shift 2
IFS=, read -ra devices <<<"${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 $((gpus - 1)))}"
[ "${#devices[@]}" -ge "$gpus" ] || { echo "CUDA_VISIBLE_DEVICES names ${#devices[@]} GPUs, not $gpus" >&2; exit 2; }
mkdir -p "$out/shards" "$out/logs"
running=()
trap 'kill "${running[@]}" 2>/dev/null || true; wait' EXIT
for ((i = 1; i <= gpus; i++)); do
    CUDA_VISIBLE_DEVICES=${devices[i - 1]} drift "$@" --shard "$i/$gpus" -o "$out/shards/$i" &>"$out/logs/$i.txt" &
    running+=($!)
done
for one in "${running[@]}"; do
    wait "$one" || { tail -n 3 "$out"/logs/*.txt >&2; exit 1; }
done
running=()
drift merge "$out"/shards/*/ -o "$out/merged"
