#!/usr/bin/env bash
# Builds the wheel of the Python package and tests it where users install it: in an empty Python
# environment beside each torch that it has a library for. `./check --wheel` runs it.
#
#   tests/check_wheel.sh                builds the wheel (scripts/make_wheel.sh), tests it, and
#                                         writes the result and its date to docs/audit/wheel.md
#   tests/check_wheel.sh --torch V,...  the same for these torches
#   tests/check_wheel.sh WHEEL          tests this wheel, also with --torch
#
# Beside each torch of PyPI (scripts/torch_env.sh): import, one training step, and the golden cases
# of the wheel by `python -m sextant.conformance`; beside the newest and transformers also the
# recipe of docs/doctor.md. Without torch: the command `sextant` and the sentences of ImportError.
# Beside Debian's torch, if python3-torch is installed: the refusal. The first call downloads each
# torch, more than 500 MB, and compiles a library for it.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"

torches=2.8.0,2.11.0,2.15.0 wheel=
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
    --torch) torches=${2:-}; shift ;;
    *.whl) wheel=$(realpath -qe "$1") || fail "expected a wheel, but there is no file $1" ;;
    *) fail "unknown argument $1: expected --torch VERSION,... or a wheel" ;;
  esac
  (($#)) && shift || fail "--torch: expected versions such as 2.11.0"
done
page=$root/docs/audit/wheel.md
work=$builds/wheel
mkdir -p "$work"
cd "$work" # the folder `sextant` of the sources must not be found in Python's path
[[ -n $wheel ]] || wheel=$("$root/scripts/make_wheel.sh" --torch "$torches" | tail -n 1)
IFS=, read -ra versions <<<"$torches"

# bare NAME [TORCH_PYTHON]: makes an environment with the wheel, and with the torch and numpy of
# another interpreter. Prints the path of its interpreter.
bare() {
  local environment=$work/beside-$1 python=$work/beside-$1/bin/python
  rm -rf "$environment"
  python3 -m venv "$environment" >&2
  if [[ -n ${2:-} ]]; then
    site_of "$2" >"$(site_of "$python")/torch.pth"
  fi
  "$python" -m pip --disable-pip-version-check install -q --no-deps --no-index "$wheel" >&2
  printf '%s\n' "$python"
}
site_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# refused WORDS PYTHON [VARIABLE=VALUE...]: whether `sextant.load()` ends in ImportError in these
# words, and in no crash.
refused() {
  local words=$1 python=$2 said status=0
  shift 2
  said=$(env "$@" "$python" -c 'import sextant; sextant.load()' 2>&1) || status=$?
  printf '%s\n' "$said"
  ((status == 1)) && grep -Fq -e "ImportError: sextant: $words" <<<"$said"
}

beside_torch() { # PYTHON MINOR
  "$1" "$root/tests/python/wheel_step.py" || return 1
  "$1" -m sextant.conformance || return 1
  local library
  for library in "$(site_of "$1")"/sextant/lib/libsextant_torch-*.so; do
    [[ $library == *-$2.so ]] ||
      refused "$library was built for torch" "$1" SEXTANT_LIBRARY="$library" || return 1
  done
}

alone() { # PYTHON, which has neither torch nor numpy
  local program=${1%/*}/sextant said
  "$program" --version || return 1
  "$program" explain "$root/examples/yarn.json" || return 1
  "$program" convert "$root/examples/yarn.json" --as llama.cpp || return 1
  "$program" plot t5 || return 1
  "$1" -m sextant claims | tail -n 3 || return 1
  "$1" -c 'import sys; from sextant.doctor import reading
group, = reading.read(sys.argv[1]).groups; print("Python reads", group.method)' \
    "$root/examples/yarn.json" || return 1
  "$1" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1]).sextant_explain_json' \
    "$(site_of "$1")/sextant/lib/libsextant_config.so" || return 1
  ! said=$("$program" survey 2>&1) || return 1
  printf '%s\n' "$said"
  grep -Fq 'needs libtorch' <<<"$said" || return 1
  refused "expected torch, but this Python has none" "$1"
}

beside_debian() { # PYTHON, whose packages Debian's python3 uses
  local site library
  site=$(site_of "$1")
  refused "expected a library for torch" /usr/bin/python3 PYTHONPATH="$site" || return 1
  for library in "$site"/sextant/lib/libsextant_torch-*.so; do
    refused "$library was built for torch" /usr/bin/python3 PYTHONPATH="$site" \
      SEXTANT_LIBRARY="$library" || return 1
  done
}

# The recipe of docs/doctor.md, with the command of an environment that is not activated.
recipe() { # PYTHON, which has transformers
  local program=${1%/*}/sextant folder=$work/recipe status=0
  mkdir -p "$folder"
  sed 's/"num_attention_heads": 28,/& "num_key_value_heads": 4, "num_hidden_layers": 4,/' \
    "$root/examples/yarn.json" >"$folder/config.json"
  "$program" doctor "$folder" || return 1
  "$program" doctor "$folder/config.json" "$folder/config.json" || return 1
  "$program" doctor "$folder/config.json" "$root/examples/yarn-without-length.json" || status=$?
  ((status == 1))
}

rows=()
# tried NAME WORDS COMMAND...: a stage that becomes a row of the page. WORDS: a command that prints
# the cell about its log.
tried() {
  local name=$1 words=$2 before=${#failed[@]}
  shift 2
  stage "wheel-$name" "$@"
  if ((${#failed[@]} == before)); then
    rows+=("| $name | passed | $($words "$builds/check-wheel-$name.log") |")
  else
    rows+=("| $name | FAILED | \`build/check-wheel-$name.log\` |")
  fi
}
conformance_of() { # the training step, and the sums of the golden cases
  printf '%s; golden cases: %s' "$(grep -m 1 '^one training step' "$1")" \
    "$(grep -m 1 -E '^[0-9]+ passed' "$1")"
}
commands_of() {
  echo "explain, convert, plot, claims, libsextant_config; survey is refused: it needs libtorch"
}
recipe_of() { echo "a model of transformers is sound, two unlike files are found"; }
refusals_of() { echo "$(grep -c '^ImportError' "$1") refusals in words, no crash"; }

python=$(bare alone)
tried without-torch commands_of alone "$python"
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  tried "debian-torch" refusals_of beside_debian "$python"
fi
for version in "${versions[@]}"; do
  say "Beside torch $version"
  torch_python=$("$root/scripts/torch_env.sh" "$version" | tail -n 1)
  tried "torch-$version" conformance_of beside_torch "$(bare "${version%.*}" "$torch_python")" \
    "${version%.*}"
done

newest=${versions[-1]} transformers=5.24.0
torch_python=$("$root/scripts/torch_env.sh" "$newest" "transformers==$transformers" | tail -n 1)
tried "doctor-transformers-$transformers" recipe_of recipe "$(bare doctor "$torch_python")"

program=$work/beside-alone/bin/sextant
{
  cat <<END
# The wheel beside torch

This page is written by \`./check --wheel\`, which builds the wheel of the Python package and tests
it in empty environments: with the command alone, beside Debian's torch, and beside each torch of
PyPI that it has a library for. [Installation](../install.md) says how it is used.

| | |
| --- | --- |
| date | $(date -u +%F) |
| Sextant | $("$program" --version | sed -n '1s/^sextant //p') |
| wheel | \`${wheel##*/}\` |
| size | $(($(stat -c %s "$wheel") / 1000)) kB |
| Python | $("$python" -c 'import sys; print(sys.version.split()[0])') |

| environment | result | what ran |
| --- | --- | --- |
END
  printf '%s\n' "${rows[@]}"
} >"$page.new"
mv "$page.new" "$page"
verdict
