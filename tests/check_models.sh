#!/usr/bin/env bash
# Tests sextant.transformers: small models of transformers, and what they do in use, with their own
# attention and with Sextant's; and what measures checkpoints, with real models
# (scripts/fetch_models.sh). It builds the library for two torches, which takes half an hour, and
# downloads 1.4 GB once.
#
#   tests/check_models.sh            the oldest and the newest supported pair of torch and
#                                      transformers; writes docs/transformers.md and its table
#   tests/check_models.sh --newest   only the newest; writes nothing
#
# The environments are build/torch-VERSION, made by scripts/torch_env.sh.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"
source "$root/scripts/torch_library.sh"

pairs=("2.8.0 4.57.6" "2.15.0 5.24.0") page=$root/docs/transformers.md write=1
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --newest) pairs=("${pairs[-1]}") write= ;;
  '') ;;
  *) fail "unknown argument $1: expected --newest or none" ;;
esac

install "${build_packages[@]}" "${text_packages[@]}"
"$root/scripts/fetch_models.sh" >/dev/null
lock_builds
configure
build sextant_command
export SEXTANT_COMMAND=$builds/$preset/bin/sextant

for pair in "${pairs[@]}"; do
  read -r torch transformers <<<"$pair"
  python=$("$root/scripts/torch_env.sh" "$torch" "transformers==$transformers" | tail -n 1)
  torch_library "$python"
  # Real models are those of the newest pair.
  unset SEXTANT_MODELS
  [[ $pair != "${pairs[-1]}" ]] || export SEXTANT_MODELS=$builds/models
  cd "$root/tests/python/transformers"
  stage "models-use-$transformers" "$python" -m unittest discover
  cd "$root/tests/python/measure"
  stage "models-measure-$transformers" "$python" -m unittest discover
  cd "$root/tests/python/transformers"
  stage "models-example-$transformers" "$python" "$root/examples/transformers_model.py"
  block=summary
  [[ $pair != "${pairs[-1]}" ]] || block=table
  command=(matrix.py ${write:+--write "$block"})
  stage "models-$transformers" "$python" "${command[@]}"
done
if [[ $write && ${#failed[@]} == 0 ]]; then
  sed -i "s/^Last run: .*/Last run: $(date -u +%F), Sextant $("$SEXTANT_COMMAND" --version |
    sed -n '1s/^sextant //p')./" "$page"
fi
verdict
