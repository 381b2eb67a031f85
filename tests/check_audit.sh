#!/usr/bin/env bash
# Compares `sextant explain` with the code of transformers, for every folder of its models. The
# known states are in tests/audit/transformers-VERSION.txt. It takes about five minutes, and
# downloads 550 MB once.
#
#   tests/check_audit.sh            writes docs/audit/transformers-VERSION.md, and fails if a
#                                     state differs from the list
#   tests/check_audit.sh --update   also rewrites the list
#   tests/check_audit.sh --vision   only vision towers and M-RoPE, and their part of the page
#
# The environment is build/torch-2.15.0, made by scripts/torch_env.sh.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"

torch=2.15.0 transformers=5.24.0
case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --update | --vision | '') ;;
  *) fail "unknown argument $1: expected --update, --vision or none" ;;
esac

lock_builds
install "${build_packages[@]}" "${text_packages[@]}"
configure
build sextant_command
unlock_builds
python=$("$root/scripts/torch_env.sh" "$torch" "transformers==$transformers" | tail -n 1)
audit=("$python" "$root/tests/audit/audit_transformers.py")
stage audit-control "${audit[@]}" --self-test
say "Auditing transformers $transformers; build/audit has the results"
if "${audit[@]}" --sextant "$builds/$preset/bin/sextant" --out "$builds/audit" --resume --page "$@"
then say "ok      audit"; else failed+=(audit); fi
verdict
