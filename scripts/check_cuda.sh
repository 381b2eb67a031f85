#!/usr/bin/env bash
# Checks the cuda backend; `./check --cuda` runs it.
#
#   scripts/check_cuda.sh             on a machine with a GPU its tests there, else the check of a
#                                     build; writes the result and its date into docs/cuda.md
#   scripts/check_cuda.sh --kernels   the same without the tests on fibers, which `./check` has run
#                                     before; writes nothing
#   scripts/check_cuda.sh --dry-run   the steps of a machine with a GPU, with fibers in its place
#
# Without a GPU: nvcc compiles all kernels for sm_80 and sm_90 (or SEXTANT_CUDA_ARCHITECTURES), none
# of which may spill registers; the library is opened; the tests of the kernels on fibers run, with
# sanitizers too if build/asan is there. The kernels take about ten minutes of two cores. Without
# nvcc all of it is left out.
#
# With a GPU: card_test on it (tests/attention/cuda/card_test.cc), its smallest cases under
# compute-sanitizer, and the tests on fibers if this build folder has them. nvcc and g++ alone are
# needed, and the time is three minutes of 16 cores. SEXTANT_COMMIT names the commit where there is
# no repository.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

page=$root/docs/cuda.md write=1 on_fibers=1 dry_run=
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
    --kernels) on_fibers= write= ;;
    --dry-run) dry_run=1 write= ;;
    *) fail "unknown argument $1: expected --kernels or --dry-run" ;;
  esac
  shift
done

PATH=$PATH:/usr/local/cuda/bin
mkdir -p "$builds"
folder=$builds/cuda
jobs_here=${SEXTANT_JOBS:-$(jobs)}
commit() {
  echo "${SEXTANT_COMMIT:-$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}"
}
has_gpu() { nvidia-smi -L 2>/dev/null | grep -q '^GPU' || [[ -e /dev/nvidiactl ]]; }
card() {
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1 |
    grep . || echo "unknown, as there is no nvidia-smi"
}

rows=()
# tried NAME WORDS COMMAND...: a stage that becomes a row of the page, with the last line of its
# log if it passes.
tried() {
  local name=$1 words=$2 before=${#failed[@]} result
  shift 2
  stage "cuda-$name" "$@"
  result=FAILED
  ((${#failed[@]} > before)) || result="passed: $(tail -n 1 "$builds/check-cuda-$name.log")"
  rows+=("| $words | $result |")
}
# write_page BLOCK ROWS...: replaces the table between <!-- BLOCK --> and <!-- /BLOCK -->.
write_page() {
  local block=$1
  shift
  [[ $write ]] || return 0
  {
    sed "/^<!-- $block -->\$/q" "$page"
    printf '%s\n' '| | |' '| --- | --- |' "| date | $(date -u +%F) |" "| commit | $(commit) |" "$@"
    sed -n "/^<!-- \/$block -->\$/,\$p" "$page"
  } >"$page.new"
  mv "$page.new" "$page"
}

# ctest of a preset's build, for the tests on fibers.
fiber_tests() {
  local in=$builds/$1/tests/attention/cuda
  ctest --test-dir "$in" --output-on-failure --no-tests=error -j "$jobs_here" || return
  ctest --test-dir "$in" -N | sed -n 's/^Total Tests: \(.*\)/\1 programs/p'
}

# ---- without a GPU ----

open_library() {
  g++ -std=c++20 "-I$root" -o "$folder/open_library" \
    "$root/tests/attention/cuda/open_library.cc" -ldl || return
  "$folder/open_library" "$folder/libsextant_cuda.so"
}
spills() { "$root/tests/ptxas_report.py" "$folder"/*.ptxas; }

without_gpu() {
  if ! command -v nvcc >/dev/null; then
    say "left out cuda: no nvcc"
    exit
  fi
  local architectures=${SEXTANT_CUDA_ARCHITECTURES:-80 90}
  say "Compiling the kernels for architectures $architectures, two sources at a time"
  SEXTANT_CUDA_ARCHITECTURES=$architectures SEXTANT_JOBS=$((jobs_here < 2 ? jobs_here : 2)) \
    "$root/scripts/build_cuda.sh" "$folder" kernels >&2 || fail "nvcc could not build the kernels"
  local size architecture
  size=$(stat -c %s "$folder/libsextant_cuda.so")
  say "libsextant_cuda.so for $architectures: $size bytes"
  stage cuda-spills spills
  while read -r architecture; do
    rows+=("| ${architecture%%:*} | ${architecture#*: } |")
  done < <(grep '^sm_' "$builds/check-cuda-spills.log")
  rows+=("| libsextant_cuda.so for $architectures | $size bytes |")
  tried opens "the library is opened without a GPU" open_library

  [[ $on_fibers ]] || return 0
  lock_builds
  install "${build_packages[@]}" "${test_packages[@]}"
  configure -DSEXTANT_TESTS=ON
  build attention_cuda_test attention_cuda_property_test attention_cuda_golden_test
  tried fibers "the kernels on fibers" fiber_tests "$preset"
  if (preset=asan && is_configured); then
    local release=$preset
    preset=asan
    build attention_cuda_test attention_cuda_property_test attention_cuda_golden_test
    preset=$release
    tried sanitized "the same with ASan and UBSan" fiber_tests asan
  else
    say "left out the sanitizers: there is no $builds/asan (./check makes it)"
  fi
  write_page cuda "| nvcc | $(nvcc --version | sed -n 's/.*release.*, V//p') |" "${rows[@]}"
}

# ---- with a GPU ----

# outcome_of LOG STATUS: prints the log of a program that has run, and has its status.
outcome_of() {
  cat "$1"
  return "$2"
}
# sanitized TOOL: the smallest cases under a tool of compute-sanitizer. A tool that is not there, or
# that the system refuses, prints no summary.
sanitized() {
  local log=$builds/cuda-$1.log status=0
  compute-sanitizer --tool "$1" --error-exitcode 9 "$folder/card_test" --smallest --threads 1 \
    >"$log" 2>&1 || status=$?
  if grep -q SUMMARY "$log"; then
    tried "$1" "the smallest cases under $1" outcome_of "$log" "$status"
  else
    say "left out $1: not available ($(tail -n 1 "$log"))"
    rows+=("| the smallest cases under $1 | not available |")
  fi
}

with_gpu() {
  local on=() card=fibers tool began=$SECONDS targets=(kernels card_test)
  if [[ $dry_run ]]; then
    on=(--fibers) targets=(card_test)
  else
    card=$(card)
  fi
  say "Building for ${card%%,*}"
  "$root/scripts/build_cuda.sh" "$folder" "${targets[@]}" >"$builds/check-cuda-build.log" 2>&1 || {
    show_log "$builds/check-cuda-build.log"
    fail "NOTHING WAS TESTED: the build failed"
  }
  say "built in $((SECONDS - began)) s"
  export SEXTANT_CUDA_LIBRARY=$folder/libsextant_cuda.so
  if [[ ! $dry_run ]]; then
    stage cuda-spills spills
    tried opens "the library is opened" open_library
  fi
  tried card "results, gradients and 100 runs of the same bits" \
    "$folder/card_test" --threads "$jobs_here" "${on[@]}"
  cat "$builds/check-cuda-card.log" >&2
  if [[ $dry_run ]]; then
    tried smallest "the smallest cases" "$folder/card_test" --smallest "${on[@]}"
  else
    for tool in memcheck racecheck synccheck; do sanitized "$tool"; done
  fi
  if [[ ! $on_fibers ]]; then
    return 0
  elif [[ -x $builds/$preset/bin/attention_cuda_test ]]; then
    tried fibers "the kernels on fibers" fiber_tests "$preset"
  else
    say "left out the tests on fibers: $builds/$preset has none"
  fi
  write_page card "| card, driver | $card |" \
    "| nvcc | $(nvcc --version 2>/dev/null | sed -n 's/.*release.*, V//p') |" "${rows[@]}"
}

if [[ $dry_run ]] || has_gpu; then with_gpu; else without_gpu; fi
verdict
