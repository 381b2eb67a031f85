#!/usr/bin/env bash
# Makes a Python environment with a torch of PyPI, without its gigabytes of CUDA packages.
#
#   scripts/torch_env.sh VERSION [REQUIREMENT ...]
#   python=$(scripts/torch_env.sh 2.15.0 transformers==5.24.0)
#
# The environment is build/torch-VERSION. It has torch VERSION, NumPy, the REQUIREMENTs (in pip's
# syntax) and their dependencies. The last line of standard output is the path of its interpreter;
# everything else goes to standard error. A call with nothing to do ends at once; a call with new
# requirements installs them.
#
# PyPI's torch for x86-64 Linux is linked to CUDA's libraries, which are packages of several GB.
# They are not installed; scripts/cuda_stand_ins.py puts small libraries in their place, so that
# `import torch` works, torch computes on the CPU, and torch.cuda.is_available() is False. A torch
# without CUDA (AArch64) gets no stand-ins. The CUDA packages are also removed from torch's
# metadata; otherwise pip would download them with the next package that depends on torch, and
# `pip check` would report them.
#
# The environment is made in build/torch-VERSION.part and renamed when it is complete, so that
# build/torch-VERSION is never incomplete. After an interruption the next call starts again, with
# pip's cache of earlier downloads (550 MB for torch).
#
#   SEXTANT_PYTHON   the interpreter that makes the environment (python3)
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  [0-9]*.*) version=$1 ;;
  *) fail "expected a version of torch, but got \"${1:-}\"" ;;
esac
shift
for requirement in "$@"; do
  [[ $requirement != -* ]] ||
    fail "$requirement: expected a requirement of pip such as numpy==2.3.0"
done
requirements=("torch==$version" numpy "$@")

environment=$builds/torch-$version part=$builds/torch-$version.part
python3=${SEXTANT_PYTHON:-python3}
mkdir -p "$builds"
exec 8>"$builds/.torch-$version.lock"
flock -n 8 || { say "Another call makes $environment; waiting for it."; flock 8; }

# The file `requirements` of an environment lists the requirements that it was made for, one per
# line.
has_all() {
  [[ -f $environment/requirements && -x $environment/bin/python ]] || return 1
  local requirement
  for requirement in "${requirements[@]}"; do
    grep -Fxq -e "$requirement" "$environment/requirements" || return 1
  done
}
if has_all; then
  printf '%s\n' "$environment/bin/python"
  exit
fi

needs() { # TOOL PACKAGE
  command -v "$1" >/dev/null || fail "there is no $1 here. Debian has it in the package $2."
}
install python3 python3-venv binutils gcc
needs "$python3" python3
needs readelf binutils
needs nm binutils
needs gcc gcc
"$python3" -c 'import ensurepip, venv' 2>/dev/null ||
  fail "$python3 cannot make a virtual environment. Debian has the modules in the package" \
    "python3-venv."

# An existing environment is renamed while it changes, so that an interruption leaves none.
rm -rf "$part"
if [[ -f $environment/requirements ]]; then
  mv "$environment" "$part"
else
  [[ ! -e $environment ]] ||
    fail "$environment is there and is no environment of this script's: please remove it"
fi

python=$part/bin/python log=$builds/torch-$version.log
pip() {
  logged "$log" "$python" -m pip --disable-pip-version-check --no-input install "$@" ||
    fail "pip could not install $*"
}
if [[ ! -d $part ]]; then
  say "Making $environment: torch $version"
  logged "$log" "$python3" -m venv "$part" || fail "$python3 could not make a virtual environment"
  pip --no-deps "torch==$version"
  "$python" "$root/scripts/cuda_stand_ins.py" --forget-packages >&2
fi
pip "${requirements[@]}"
"$python" "$root/scripts/cuda_stand_ins.py" >&2
logged "$log" "$python" -c 'import numpy, torch; assert float(torch.ones(3).sum()) == 3' ||
  fail "the torch of $part cannot be imported: see $log"

{ [[ ! -f $part/requirements ]] || cat "$part/requirements"; printf '%s\n' "${requirements[@]}"; } |
  sort -u >"$part/requirements.new"
mv "$part/requirements.new" "$part/requirements"
# Scripts of the environment contain the path of its interpreter, which is about to change.
{ grep -rlI -e "$part" "$part/bin" "$part/pyvenv.cfg" || true; } |
  xargs -r sed -i "s|$part|$environment|g"
mv "$part" "$environment"
printf '%s\n' "$environment/bin/python"
