#!/usr/bin/env bash
# Builds the library for a torch of PyPI and tests it with that torch; ./check does the same for the
# system's torch.
#
#   tests/check_torch.sh VERSION           makes a Python environment with torch VERSION
#                                            (scripts/torch_env.sh), and builds and tests in
#                                            build/with-torch-VERSION
#   tests/check_torch.sh --python PYTHON   uses the torch of this interpreter, which needs numpy
#
# It tests the golden cases (sextant.conformance: tests/golden/data, and SEXTANT_GOLDEN or
# ../shared/golden), the operators (tests/torch/load_library_test.py: opcheck, torch.compile) and
# the Python package (tests/python/package), whose types mypy reads where VERSION is given. It needs
# torch 2.6 or later. A failing test does not stop the others; the exit status is 0 if none failed.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"
source "$root/scripts/torch_library.sh"

case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --python)
    python=$(command -v "${2:-}") || fail "--python: expected an interpreter, but got \"${2:-}\""
    # The path becomes absolute without following links: the interpreter of an environment is a link
    # and finds its environment by its own path.
    python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
    shift ;;
  [0-9]*.*) version=$1 ;;
  *) fail "expected a version of torch or --python PYTHON, but got \"${1:-}\"" ;;
esac

(($# <= 1)) || fail "unknown argument $2: expected none after what torch to take"

[[ -z ${version:-} ]] || python=$("$root/scripts/torch_env.sh" "$version" mypy | tail -n 1)
lock_builds
torch_library "$python"

golden=("$root/tests/golden/data")
for folder in "$(realpath -m "${SEXTANT_GOLDEN:-$root/../shared/golden}")"/*/; do
  [[ ! -d $folder ]] || golden+=("$folder")
done
cd "$builds"
stage "$preset-conformance" "$python" -m sextant.conformance "${golden[@]}"
say "        $(tail -n 1 "$builds/check-$preset-conformance.log")"
stage "$preset-operators" "$python" "$root/tests/torch/load_library_test.py" "$SEXTANT_LIBRARY"
stage "$preset-python" "$python" -m unittest discover -s "$root/tests/python/package"
verdict
