#!/usr/bin/env bash
# Tests attention inside graphs of ggml; `./check --ggml` runs it and it writes docs/ggml-check.md.
#
# ggml comes from PyPI (bench/get_ggml.sh). ggml_test runs with it in place of its stand-in, and
# bench_blocks compares the graphs of a Conformer's and a DeBERTa's attention, by ggml's operations
# and by Sextant's, with a reference in float64. bench/blocks.py times them.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  '') ;;
  *) fail "unknown argument $1: expected none" ;;
esac

lock_builds
install "${build_packages[@]}" "${test_packages[@]}"
ggml=$("$root/bench/get_ggml.sh")
configure -DSEXTANT_TESTS=ON -DSEXTANT_BENCH=ON
logged "$builds/ggml-configure.log" cmake "-Dggml_DIR=$builds/ggml/lib/cmake/ggml" \
  "$builds/$preset" || fail "CMake could not configure the build"
build bench_blocks ggml_test

rows=()
# tried NAME WORDS COMMAND...: a stage that becomes a row of the page, with its log's last line.
tried() {
  local name=ggml-$1 words=$2 before=${#failed[@]} result=FAILED
  shift 2
  stage "$name" "$@"
  ((${#failed[@]} > before)) || result=$(tail -n 1 "$builds/check-$name.log")
  rows+=("| $words | $result |")
}
tried test "ggml_test with this ggml" "$builds/$preset/bin/ggml_test"
for block in conformer deberta; do
  for size in 80 131; do
    tried "$block-$size" "$block, $size rows: errors relative to the largest value" \
      "$builds/$preset/bin/bench_blocks" --block "$block" --check --rows "$size" --threads 2
  done
done

{
  cat <<END
# The check inside ggml

This page is written by \`./check --ggml\`, which builds ggml from the sources in PyPI's
llama-cpp-python. \`bench_blocks --check\` compares each way to write a block's attention as a
graph with a reference in float64. [The cost of attention](performance.md) has the times.

| | |
| --- | --- |
| date | $(date -u +%F) |
| Sextant | commit $(git -C "$root" rev-parse --short=12 HEAD) |
| ggml | $ggml |
END
  printf '%s\n' "${rows[@]}"
} >"$root/docs/ggml-check.md"
verdict
