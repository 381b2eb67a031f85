#!/usr/bin/env bash
# Tests `sextant doctor` on live models: faults planted in small models are found, and models of the
# audit's folders have no findings, with the oldest and the newest supported pair of torch and
# transformers. It takes about ten minutes, and downloads 1.2 GB once.
#
#   scripts/check_doctor.sh            both pairs
#   scripts/check_doctor.sh --newest   only the newest
#
# The environments are build/torch-VERSION, made by scripts/torch_env.sh.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

pairs=("2.8.0 4.57.6" "2.15.0 5.24.0")
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --newest) pairs=("${pairs[-1]}") ;;
  '') ;;
  *) fail "unknown argument $1: expected --newest or none" ;;
esac

lock_builds
install "${build_packages[@]}" "${text_packages[@]}"
configure
build sextant_command
unlock_builds
export SEXTANT_COMMAND=$builds/$preset/bin/sextant
for pair in "${pairs[@]}"; do
  read -r torch transformers <<<"$pair"
  python=$("$root/scripts/torch_env.sh" "$torch" "transformers==$transformers" | tail -n 1)
  cd "$root/tests/python/doctor"
  for tests in quick faults sound folders; do
    command=(-m unittest "test_$tests")
    [[ $tests != quick ]] || command=(-m unittest discover -s quick)
    stage "doctor-$tests-$transformers" "$python" "${command[@]}"
  done
done
verdict
