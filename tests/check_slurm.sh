#!/usr/bin/env bash
# Runs a survey as jobs of a real Slurm on this machine and compares it with the same survey in one
# process: every measured number and every weight must be equal bit for bit. `./check --slurm` runs
# it; it takes two minutes after the build.
#
#   tests/check_slurm.sh           builds the command, tests it, and writes the result and its
#                                    date into docs/many-machines.md
#   tests/check_slurm.sh COMMAND   tests this command (a file); writes nothing
#
# munged, slurmctld and slurmd run on 127.0.0.1 with their own ports and key, and keep all their
# files in a temporary folder; a Slurm that is already on the machine is not touched. The packages
# slurm-wlm and munge are installed if they are missing. A check that cannot start Slurm fails.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"
PATH=$PATH:/usr/sbin:/sbin

page=$root/docs/many-machines.md command=
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  '') ;;
  *)
    command=$(realpath -qe "$1") || fail "expected a command, but there is no file \"$1\""
    ;;
esac

# 1562 small steps, 2 s of training. yarn needs the trained weights of rope.
survey=(survey --smoke --bytes 400000 --methods none,rope,yarn)

mkdir -p "$builds"
install slurm-wlm munge procps hostname python3
for program in munged mungekey slurmctld slurmd sbatch srun squeue scancel scontrol sinfo; do
  command -v "$program" >/dev/null ||
    fail "NOTHING WAS TESTED: there is no $program here. Please install slurm-wlm and munge."
done
if [[ -z $command ]]; then
  lock_builds
  packages=("${build_packages[@]}" "${text_packages[@]}")
  if wants_torch && ! has_python_torch; then packages+=("${torch_packages[@]}"); fi
  install "${packages[@]}"
  configure
  build sextant
  unlock_builds
  command=$builds/$preset/bin/sextant
  write=1
fi

# ---- Slurm in a folder ----

work=$(mktemp -d "${TMPDIR:-/tmp}/sextant-slurm-XXXXXX")
chmod 711 "$work" # munged refuses a socket that others cannot reach
mkdir "$work/log" "$work/state" "$work/spool" "$work/munge"
chmod 700 "$work/munge"
export SLURM_CONF=$work/slurm.conf
daemons=()
exec 8>&2

# wait_for SECONDS COMMAND...: repeats the command until it succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || {
      say "waited in vain for: $*"
      return 1
    }
    sleep 0.1
  done
}
no_jobs() { [[ -z $(squeue -h 2>&1) ]]; }
# Prints the processes of this Slurm that watch over jobs: their log is in the folder.
keepers() {
  local process
  for process in $(pgrep -x slurmstepd); do
    find "/proc/$process/fd" -lname "$work/*" -printf "$process\n" -quit 2>/dev/null || true
  done
}
has_ended() { no_jobs && [[ -z $(keepers) ]]; }
is_idle() { [[ $(sinfo -h -o %T 2>/dev/null) == idle ]]; }

# Jobs end before the daemons, which would leave their processes; the daemons in reverse order.
clean_up() {
  local status=$? i process
  trap - EXIT
  trap '' INT TERM
  exec 2>&8 # a stage has redirected it
  if ((${#daemons[@]} == 3)); then
    scancel --quiet --user="$(id -un)" >/dev/null 2>&1 || true
    wait_for 20 has_ended || true
  fi
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do
    kill "${daemons[i]}" 2>/dev/null || true
    wait "${daemons[i]}" 2>/dev/null || true
  done
  for process in $(keepers); do kill -9 "$process"; done
  if ((status == 0)); then
    rm -rf --one-file-system "$work"
  else
    say "Kept: surveys and logs of jobs in $work, logs of Slurm in $work/log."
  fi
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# daemon NAME COMMAND...: starts a daemon that stays in the foreground of its own process.
daemon() {
  local name=$1
  shift
  setsid "$@" >"$work/log/$name.out" 2>&1 8>&- & # Ctrl-C must not end it before its jobs
  daemons+=($!)
}
cannot_start() {
  local log
  for log in "$work"/log/*; do show_log "$log"; done
  fail "NOTHING WAS TESTED: $1"
}

host=$(hostname -s) user=$(id -un)
read -r controller_port node_port < <(python3 -c 'import socket
ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(port.getsockname()[1] for port in ports))')
cat >"$SLURM_CONF" <<END
ClusterName=sextant
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
SlurmctldPort=$controller_port
SlurmdPort=$node_port
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END

say "Starting Slurm in $work"
mungekey --create --keyfile="$work/munge/key" || fail "NOTHING WAS TESTED: mungekey failed"
daemon munged munged --foreground --socket="$work/munge.socket" --key-file="$work/munge/key" \
  --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" --log-file="$work/munge/log" \
  --num-threads=2
wait_for 10 test -S "$work/munge.socket" || cannot_start "munged does not start"
daemon slurmctld slurmctld -D
daemon slurmd slurmd -D
wait_for 60 is_idle || cannot_start "Slurm has no idle node after 60 s"

# ---- the tests: each in a folder of its own ----

cat >"$work/job.sh" <<'END'
#!/bin/bash
srun -n1 -c1 "$COMMAND" arm "$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$1")"
END
# submit FOLDER LIST OPTIONS...: a job array with a task for each line of the list. Prints its job.
submit() {
  COMMAND=$command sbatch --parsable --chdir="$1" --output=job-%A-%a.log \
    --array="1-$(wc -l <"$1/$2")" "${@:3}" "$work/job.sh" "$2"
}
# as_jobs FOLDER: runs all arms, as docs/many-machines.md does, but without a time limit.
as_jobs() {
  local first second
  first=$(submit "$1" arms.txt) || return
  echo "first wave: job $first"
  second=$(submit "$1" arms-second.txt --dependency="afterany:$first") || return
  echo "second wave: job $second"
  wait_for 300 no_jobs || squeue
  tail -n 3 "$1"/job-*.log
}

prepare() { "$command" "${survey[@]}" --prepare --out "$1"; }
collect() { "$command" survey --collect "$1" >"$1.table"; }

# The measured numbers of all arms, without times and the machine's name.
numbers() {
  sed -E '/"(train_seconds|test_seconds|machine)":/d' "$1/results.json"
}
# as_local FOLDER: whether a survey equals the one of one process, bit for bit.
as_local() {
  local file
  cmp "$work/local.table" "$1.table" || return
  for file in results.csv summary.csv; do
    cmp "$work/local/$file" "$1/$file" || return
  done
  diff <(numbers "$work/local") <(numbers "$1") || return
  compared=0
  for file in "$work"/local/arms/*/model.safetensors; do
    cmp "$file" "$1/arms/$(basename "$(dirname "$file")")/model.safetensors" || return
    compared=$((compared + 1))
  done
  ((compared > 0))
}

in_one_process() {
  "$command" "${survey[@]}" --jobs 1 --out "$work/local" >"$work/local.table"
}
as_arrays() {
  prepare "$work/arrays" || return
  ! collect "$work/arrays" || { echo "--collect: expected failure without results"; return 1; }
  # Otherwise the second wave is not tested.
  grep -q yarn "$work/arrays/arms-second.txt" || { echo "yarn: expected second wave"; return 1; }
  as_jobs "$work/arrays" || return
  collect "$work/arrays" && as_local "$work/arrays"
}

# start_slow_job FOLDER: its worker writes a checkpoint after each of 1562 steps. Prints the job.
start_slow_job() {
  sbatch --parsable --chdir="$1" --output=slow-%j.log \
    --wrap "srun -n1 -c1 '$command' arm --save-seconds 0 arms/rope-0"
}
has_checkpoint() { compgen -G "$1/arms/rope-0/checkpoint-*[1-9]??.sxt" >/dev/null; } # step 100 on
exit_code() { scontrol show job "$1" | sed -n 's/.*ExitCode=\([0-9:]*\).*/\1/p'; }
# interrupted FOLDER JOB: whether an arm has a checkpoint and no result.
interrupted() {
  echo "exit status and signal of the job: $(exit_code "$2")"
  ls "$1/arms/rope-0"
  has_checkpoint "$1" && [[ ! -f $1/arms/rope-0/result.json ]]
}

killed() {
  local folder=$work/killed job worker
  prepare "$folder" || return
  job=$(start_slow_job "$folder") || return
  wait_for 60 has_checkpoint "$folder" || return
  worker=$(worker_of "$folder") || return
  echo "kill -9 of worker $worker"
  kill -9 "$worker" || return
  wait_for 60 no_jobs || return
  interrupted "$folder" "$job" || return
  as_jobs "$folder" || return # the lock of the killed worker must not be in the way
  collect "$folder" && as_local "$folder"
}
# worker_of FOLDER: prints the process that runs the arm and was started in the folder.
worker_of() {
  local process
  for process in $(pgrep -f 'arm --save-seconds 0 arms/rope-0$'); do
    [[ $(readlink "/proc/$process/cwd") == "$1" ]] || continue
    [[ $(cat "/proc/$process/comm") == sextant ]] || continue
    echo "$process"
    return
  done
  echo "no worker runs in $1" >&2
  return 1
}

stopped() {
  local folder=$work/stopped job
  prepare "$folder" || return
  job=$(start_slow_job "$folder") || return
  wait_for 60 has_checkpoint "$folder" || return
  scancel -s TERM "$job.0" || return # as --signal=TERM@120 does before the time limit
  wait_for 60 no_jobs || return
  interrupted "$folder" "$job" || return
  [[ $(exit_code "$job") == 75:0 ]] || { echo "expected the exit status 75"; return 1; }
  as_jobs "$folder" || return
  collect "$folder" && as_local "$folder"
}

launched() {
  "$command" "${survey[@]}" --launch 'srun -n1 -c1' --jobs 2 --out "$work/launched" \
    >"$work/launched.table" || return
  as_local "$work/launched"
}

rows=()
# tried NAME WORDS FUNCTION: a stage that becomes a row of the page.
tried() {
  local before=${#failed[@]} result=passed
  stage "slurm-$1" "$3"
  ((${#failed[@]} == before)) || result=FAILED
  rows+=("| $2 | $result |")
}
say "Slurm runs; each of 5 surveys has 6 arms"
stage slurm-local in_one_process
((${#failed[@]} == 0)) || verdict # nothing to compare with
tried arrays "two job arrays, the second after the first" as_arrays
tried killed "\`kill -9\` of a worker in the middle, then the arrays" killed
tried stopped "\`scancel -s TERM\` of a step: exit status 75, then the arrays" stopped
tried launched "\`--launch 'srun -n1 -c1' --jobs 2\`" launched

if [[ ${write:-} ]]; then
  {
    sed '/^<!-- slurm -->$/q' "$page"
    cat <<END
| | |
| --- | --- |
| date | $(date -u +%F) |
| Sextant | $("$command" --version | sed -n '1s/^sextant //p') |
| Slurm | $(sinfo --version | sed 's/^slurm[^ ]* //') |
END
    printf '%s\n' "${rows[@]}"
    sed -n '/^<!-- \/slurm -->$/,$p' "$page"
  } >"$page.new"
  mv "$page.new" "$page"
fi
verdict
