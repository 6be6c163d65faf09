#!/usr/bin/env bash
# A Slurm of one node, in one folder, of this user's processes alone: bash tests/slurm/cluster.sh FOLDER COMMAND…
#
# Starts munged, slurmctld and slurmd, runs COMMAND with SLURM_CONF set, and stops what it started, by its own process ids.
# Needs root and `apt-get install --no-install-recommends slurm-wlm munge`; nothing of the system's own Slurm is touched.
set -euo pipefail
folder=$(realpath -m "${1:?usage: cluster.sh FOLDER COMMAND...}")
shift
node=$(hostname -s)
rm -rf "$folder"/{state,spool,log,munge.*}
mkdir -p "$folder"/{state,spool,log}
socket=$folder/munge.socket
chmod 0755 "$folder"

dd if=/dev/urandom bs=128 count=8 status=none >"$folder/munge.key"
chmod 0400 "$folder/munge.key"
cat >"$folder/slurm.conf" <<CONF
ClusterName=drift
SlurmctldHost=$node
SlurmctldPort=${DRIFT_SLURM_PORT:-16817}
SlurmdPort=$((${DRIFT_SLURM_PORT:-16817} + 1))
SlurmUser=root
AuthType=auth/munge
# After a requeue a task waits until its credential has expired.
AuthInfo=socket=$socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
MinJobAge=600
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
KillWait=5
NodeName=$node CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=$node Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
export SLURM_CONF=$folder/slurm.conf

started=()
stop() {
    for ((at = ${#started[@]} - 1; at >= 0; at--)); do
        kill "${started[at]}" 2>/dev/null || continue
        for _ in {1..50}; do
            kill -0 "${started[at]}" 2>/dev/null || break
            sleep 0.1
        done
        kill -9 "${started[at]}" 2>/dev/null || true
    done
}
trap stop EXIT

daemon() { # LOG COMMAND…
    local log=$folder/log/$1
    shift
    "$@" >"$log.out" 2>&1 &
    started+=($!)
}
daemon munged munged --foreground --force --key-file="$folder/munge.key" --socket="$socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/log/munged" --seed-file="$folder/munge.seed"
for _ in {1..50}; do [ -S "$socket" ] && break; sleep 0.1; done
daemon slurmctld slurmctld -D -i
daemon slurmd slurmd -D -N "$node"
for _ in {1..100}; do
    sinfo -h -o %t 2>/dev/null | grep -q idle && break
    sleep 0.2
done
sinfo -h -o %t | grep -q idle || { echo "Slurm did not start:" >&2; tail -n 5 "$folder"/log/* >&2; exit 1; }
"$@"
