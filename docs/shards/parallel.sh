#!/usr/bin/env bash
# Shards under GNU parallel, then the merge: bash parallel.sh JOBS SHARDS OUT verb option…
# With `--sshloginfile nodes --workdir .` for parallel the same on other machines, if they have the folder.
set -euo pipefail
jobs=$1 shards=$2 out=$3
shift 3
mkdir -p "$out/shards"
seq "$shards" | parallel -q --jobs "$jobs" --halt soon,fail=1 --joblog "$out/parallel.log" \
    drift "$@" --quiet --shard {}/"$shards" -o "$out/shards/{}"
drift merge "$out"/shards/*/ -o "$out/merged"
