#!/usr/bin/env bash
# Tests ./run with stubs for Ninja and the command: the targets that are built, the arguments that
# the command gets, the command line that it is told was typed, and that ./run does not wait for
# other builds.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SEXTANT_NO_APT=1 SEXTANT_BUILD=$work/build PATH=$work/stubs:$PATH
unset SEXTANT_PRESET
build=$work/build/release
mkdir -p "$work/stubs" "$build/bin"

# The stub of the command prints its arguments and the command line that ./run passes as typed.
cat >"$work/sextant" <<'END'
#!/usr/bin/env bash
printf '%s|' "$@"
printf '%s\n' "$SEXTANT_TYPED"
END
# The stub of Ninja records its last argument, the target, and creates the command.
cat >"$work/stubs/ninja" <<END
#!/usr/bin/env bash
printf '%s\n' "\${@: -1}" >"$work/target"
cp "$work/sextant" "$build/bin/sextant"
END
chmod +x "$work/sextant" "$work/stubs/ninja"
touch "$build/build.ninja"
printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\n' "$root" >"$build/CMakeCache.txt"

failed=0
# expect WHAT EXPECTED GOT
expect() {
  [[ $2 == "$3" ]] && return
  printf '%s: expected %s, but got %s\n' "$1" "$2" "$3"
  failed=1
}
# The timeout ends a run that waits for the lock forever.
run() { timeout 30 "$root/run" "$@"; }
# runs TARGET EXPECTED WORDS...
runs() {
  local target=$1 expected=$2 got
  shift 2
  rm -f "$work/target"
  got=$(run "$@" 2>"$work/said") || true
  expect "output of run $*" "$expected" "$got"
  expect "target of run $*" "$target" "$(cat "$work/target" 2>/dev/null || echo none)"
}

typed=$root/run
runs sextant "survey|$typed"
runs sextant "--out|my survey|$typed --out 'my survey'" --out 'my survey'
runs sextant "--methods|rope,alibi:train=one|$typed --methods rope,alibi:train=one" \
  --methods rope,alibi:train=one
runs sextant "survey|--text|it's|$typed survey --text 'it'\\''s'" survey --text "it's"
runs sextant "plot|fire|$typed plot fire" plot fire
runs sextant "plot|--list|$typed plot --list" plot --list
runs sextant_command "plot|rope|$typed plot rope" plot rope
runs sextant_command "explain|config.json|$typed explain config.json" explain config.json
runs sextant_command "convert|a|--as|vllm|$typed convert a --as vllm" convert a --as vllm
runs sextant_command "--version|$typed --version" --version

# While another build holds the lock, an existing command runs at once, and a missing one as soon as
# it exists.
exec 8>"$work/build/.lock"
flock 8
runs none "explain|config.json|$typed explain config.json" explain config.json
expect "lines said" 1 "$(wc -l <"$work/said")"
rm "$build/bin/sextant"
run explain config.json >"$work/late" 2>&1 8>&- &
waiting=$!
while ! grep -qs 'waiting until' "$work/late" && kill -0 "$waiting" 2>/dev/null; do sleep 0.05; done
cp "$work/sextant" "$build/bin/new"
mv "$build/bin/new" "$build/bin/sextant"
wait "$waiting" || true
expect "output of the one that waited" "explain|config.json|$typed explain config.json" \
  "$(tail -n 1 "$work/late")"
exit "$failed"
