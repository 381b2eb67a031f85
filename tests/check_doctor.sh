#!/usr/bin/env bash
# Tests `sextant doctor` on live models: faults planted in small models are found, and models of the
# audit's folders have no findings, with the oldest and the newest supported pair of torch and
# transformers. It takes about twenty minutes, and downloads 1.2 GB once.
#
#   tests/check_doctor.sh            both pairs; writes docs/audit/doctor.md
#   tests/check_doctor.sh --newest   only the newest; writes nothing
#
# The environments are build/torch-VERSION, made by scripts/torch_env.sh.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"

pairs=("2.8.0 4.57.6" "2.15.0 5.24.0") page=$root/docs/audit/doctor.md
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --newest) pairs=("${pairs[-1]}") page= ;;
  '') ;;
  *) fail "unknown argument $1: expected --newest or none" ;;
esac

lock_builds
install "${build_packages[@]}" "${text_packages[@]}"
configure
build sextant_command
unlock_builds
export SEXTANT_COMMAND=$builds/$preset/bin/sextant

sound_folders() {
  sed -n 's/^\([0-9]*\) sound: .*/\1/p' "$builds/check-doctor-folders-$transformers.log"
}
# Prints the numbers of planted faults, of their kinds, and of those that were found.
faults() {
  sed -n 's/^\([0-9]* | [0-9]* | [0-9]*\) found$/\1/p' \
    "$builds/check-doctor-faults-$transformers.log"
}

rows=()
for pair in "${pairs[@]}"; do
  read -r torch transformers <<<"$pair"
  python=$("$root/scripts/torch_env.sh" "$torch" "transformers==$transformers" | tail -n 1)
  cd "$root/tests/python/doctor"
  before=${#failed[@]}
  for tests in quick faults sound folders; do
    command=(-m unittest "test_$tests")
    [[ $tests != quick ]] || command=(-m unittest discover -s quick)
    stage "doctor-$tests-$transformers" "$python" "${command[@]}"
  done
  result=passed
  ((${#failed[@]} == before)) || result=FAILED
  rows+=("| torch $torch, transformers $transformers | $result | $(faults) | $(sound_folders) |")
done
if [[ -n $page ]]; then
  {
    cat <<END
# The check of doctor

This page is written by \`./check --doctor\`. In small models of transformers, faults are planted
one at a time, and \`sextant doctor\` must find each with its cause and its layers
(\`tests/python/doctor\`); the default configurations of transformers' folders must have no
findings. Faults of files are in \`tests/rope_config/compare_configs_test.cc\`.

| | |
| --- | --- |
| date | $(date -u +%F) |
| Sextant | $("$SEXTANT_COMMAND" --version | sed -n '1s/^sextant //p') |

| environment | result | planted faults | of kinds | found | folders that are sound |
| --- | --- | --- | --- | --- | --- |
END
    printf '%s\n' "${rows[@]}"
  } >"$page.new"
  mv "$page.new" "$page"
fi
verdict
