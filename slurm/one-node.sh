#!/usr/bin/env bash
# A private Slurm of one node on this machine, to try the cluster commands before a real cluster.
#
#   slurm/one-node.sh start [DIR]      DIR: /tmp/waterline-slurm
#   export SLURM_CONF=DIR/slurm.conf   for sbatch, squeue, submitit and Hydra's launcher
#   slurm/one-node.sh stop [DIR]
#
# Needs slurmctld, slurmd, slurm-client and munge (Debian: apt-get install --no-install-recommends
# slurmctld slurmd slurm-client munge). Started as root, jobs run as whoever submits them; started
# as another user, they run as that user. FAKE_GPU=1 gives the node a GPU that is none, so that
# jobs which ask for one are started.
set -euo pipefail

usage() { sed -n '2,11p' "$0" | cut -c3- >&2; exit 2; }
action=${1:-}
dir=${2:-/tmp/waterline-slurm}
[[ $dir = /* ]] || dir=$PWD/$dir
port=${PORT:-16817}
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

# Whether the process that wrote this pid file still runs under that name.
runs() {
  local file=$dir/$1.pid
  [[ -s $file && $(cat "/proc/$(cat "$file")/comm" 2>/dev/null) = "$1" ]]
}

start() {
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || {
      echo "$program is missing: install slurmctld, slurmd, slurm-client and munge." >&2; exit 1; }
  done
  if runs slurmctld; then echo "A Slurm already runs in $dir: stop it first." >&2; exit 1; fi
  # What an earlier start left: its queue, or a node that was drained.
  if [[ -e $dir/slurm.conf ]]; then rm -rf "${dir:?}"/{state,spool}; fi
  mkdir -p "$dir"/{state,spool,munge}
  chmod 755 "$dir"
  # munged wants to own what leads to its socket, and the key to be nobody else's.
  chmod 755 "$dir/munge"
  [[ -e $dir/munge.key ]] || (umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
  local gres=''
  : >"$dir/gres.conf"
  if [[ -n ${FAKE_GPU:-} ]]; then
    gres=Gres=gpu:1
    echo 'Name=gpu File=/dev/null' >"$dir/gres.conf"
  fi
  local memory=$(($(awk '/^MemTotal/ {print $2}' /proc/meminfo) / 1024 * 9 / 10))
  sed -e "s|@DIR@|$dir|g" -e "s|@HOST@|$(hostname -s)|g" -e "s|@USER@|$(id -un)|g" \
    -e "s|@PORT@|$port|g" -e "s|@PORT_NODE@|$((port + 1))|g" -e "s|@CPUS@|$(nproc)|g" \
    -e "s|@MEMORY@|$memory|g" -e "s|@GRES@|$gres|g" "$here/slurm.conf.in" >"$dir/slurm.conf"

  export SLURM_CONF=$dir/slurm.conf
  munged --force --key-file="$dir/munge.key" --socket="$dir/munge/munge.socket" \
    --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
  slurmctld -i
  slurmd
  for _ in $(seq 30); do
    if [[ $(sinfo --noheader --format=%T --partition=low 2>/dev/null) = idle ]]; then
      sinfo
      echo "export SLURM_CONF=$SLURM_CONF"
      return
    fi
    sleep 1
  done
  echo "The node did not come up: see $dir/slurmctld.log and $dir/slurmd.log." >&2
  exit 1
}

stop() {
  # Only the processes of this folder, by the ids that they wrote there.
  if runs slurmctld; then
    export SLURM_CONF=$dir/slurm.conf
    scancel --me --quiet || true
    # slurmd would linger for a job that is still being ended.
    for _ in $(seq 60); do
      [[ -n $(squeue --noheader 2>/dev/null) ]] || break
      sleep 1
    done
  fi
  for program in slurmd slurmctld munged; do
    if runs "$program"; then kill "$(cat "$dir/$program.pid")"; fi
  done
}

case $action in start) start ;; stop) stop ;; *) usage ;; esac
