#!/usr/bin/env bash
# Shards on a real Slurm, in cluster.sh: bash tests/slurm/cluster.sh FOLDER bash tests/slurm/shards.sh DRIFT FOLDER
#
# An array of four whose tasks are requeued, killed and signalled on the way, then the dependent merge: the bytes of one run.
# Then scancel in the middle, and the same command again.
set -euo pipefail
drift=$(realpath "$1")
rm -rf "$2/the work"
mkdir -p "$2/the work"
cd "$2/the work"
export RAYON_NUM_THREADS=1
order=(--samples 16 --generations 4 --lp none,automaton --probabilities)
to=(--texts texts.jsonl --molecules molecules.csv)

say() { printf '== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    squeue >&2
    tail -n 20 ./*/logs/* >&2
    exit 1
}
texts() { # FOLDER [SHARDS]
    # SHARDS is a pattern.
    cat "$1"/shards/${2-*}/shard.jsonl 2>/dev/null | grep -c '"text"' || true
}
until_texts() { # FOLDER COUNT [SHARDS]
    for _ in {1..600}; do
        [ "$(texts "$1" "${3-*}")" -ge "$2" ] && return
        sleep 0.1
    done
    fail "$1 has $(texts "$1") texts"
}
until_merged() { # FOLDER
    for _ in {1..1800}; do
        [ -f "$1/record.json" ] && [ -z "$(squeue -h)" ] && return
        sleep 0.2
    done
    fail "$1 was not merged"
}
same() { # FOLDER
    cmp whole.jsonl texts.jsonl && cmp whole.csv molecules.csv || fail "$1 has other bytes"
    grep -q '"shards": *4' "$1/record.json" || fail "$1 is not merged of 4"
    rm texts.jsonl molecules.csv
}
submit() { # FOLDER
    "$drift" slurm eval "${order[@]}" "${to[@]}" --threads 1 --array 4 --partition main --cpus-per-task 1 --time 10 \
        --submit -o "$1" | sed -n 's/^submitted job \([0-9]*\),.*/\1/p'
}

say 'one run'
"$drift" eval "${order[@]}" --quiet --texts whole.jsonl --molecules whole.csv -o whole >whole.txt

say 'an array of 4: one task requeued, one stopped before its time is over, one killed'
job=$(submit 'first one')
[ -n "$job" ] || fail 'nothing was submitted'
# Of those that are stopped: one that has nothing yet has nothing to go on from.
until_texts 'first one' 1 '[23]'
scontrol requeue "${job}_2"
scancel --signal=USR1 --batch "${job}_3"
"$drift" slurm status 'first one'
until_merged 'first one'
same 'first one'
grep -q 'continues after' 'first one/logs/2.log' 'first one/logs/3.log' || fail 'no task went on'
"$drift" slurm status 'first one' | grep -q '4 done of 4' || fail 'the status'

say 'scancel in the middle, and the same command'
job=$(submit second)
until_texts second 10
scancel "$job" "$((job + 1))"
while [ -n "$(squeue -h)" ]; do sleep 0.2; done
before=$(texts second)
[ ! -e second/record.json ] || fail 'it was merged'
submit second >second.txt
until_merged second
same second
say "went on from $before texts"

say 'what Slurm refuses is said'
if "$drift" slurm eval "${order[@]}" --array 4 --partition nowhere --submit -o third 2>refused.txt; then
    fail 'it was submitted'
fi
grep -q '^drift: sbatch: refuses: .*partition' refused.txt || fail "$(cat refused.txt)"
say passed
