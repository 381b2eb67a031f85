#!/usr/bin/env bash
# Cross-compiles the parts without libtorch for AArch64 (NEON) on a Debian of another architecture,
# and tests them in an emulator.
#
#   tests/check_arm.sh         without the two tests that need most of an hour in an emulator
#   tests/check_arm.sh --all   with them
#
# Three kinds of tests are excluded: tests that start the command, since the kernel starts no
# program of another architecture; the test that uses the installed package with the machine's own
# compiler; and slow tests. A failing test does not stop the others; the exit status is 0 if none
# failed.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"

left_out='^(cli_|package_)'
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --all) ;;
  '') left_out="$left_out|^attention_(cpu|property)_test" ;;
  *) fail "unknown argument $1: expected --all or none" ;;
esac

# The script does not install these: to add a second architecture is the machine owner's decision.
packages=(g++-aarch64-linux-gnu qemu-user)
for package in libhwy-dev libfmt-dev libpng-dev libyaml-dev zlib1g-dev libexpat1-dev \
  libgtest-dev libgmock-dev librapidcheck-dev; do
  packages+=("$package:arm64")
done
dpkg-query -W "${packages[@]}" >/dev/null 2>&1 || fail "packages are missing. Please run, as root,
    dpkg --add-architecture arm64 && apt-get update
    apt-get install --no-install-recommends ${packages[*]}
and then this again."

lock_builds
preset=arm
configure -DSEXTANT_TESTS=ON -DSEXTANT_BENCH=ON
build all
stage arm ctest --test-dir "$builds/$preset" --output-on-failure --no-tests=error -j "$(nproc)" \
  -LE slow -E "$left_out"
verdict
