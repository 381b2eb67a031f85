#!/usr/bin/env bash
# Builds what needs no libtorch for AArch64, whose vectors are NEON's, on a Debian of another
# architecture, and tests it in an emulator.
#
#   scripts/check_arm.sh         but for the two tests that take an emulator most of an hour
#   scripts/check_arm.sh --all   with them
#
# Left out are tests that start the command, for the kernel starts none of another architecture, the
# one that uses the installed package with the machine's own compiler, and the slow ones. A test
# that fails does not stop the others; the exit status is 0 if none failed.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

left_out='^(cli_|package_)'
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --all) ;;
  '') left_out="$left_out|^attention_(cpu|property)_test" ;;
  *) fail "unknown argument $1: expected --all or none" ;;
esac

# Not installed by this: a second architecture is for who owns the machine to add.
packages=(g++-aarch64-linux-gnu qemu-user)
for package in libhwy-dev libfmt-dev libpng-dev zlib1g-dev libzip-dev libexpat1-dev libgtest-dev libgmock-dev librapidcheck-dev; do
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
stage arm ctest --test-dir "$builds/$preset" --output-on-failure --no-tests=error -j "$(nproc)" -LE slow -E "$left_out"
verdict
