#!/usr/bin/env bash
# Builds and uses the libraries for engines in a Debian that has only g++, CMake and Highway.
#
#   tests/check_sdk.sh     writes docs/sdk-check.md
#
# In a fresh chroot with a clone of HEAD (scripts/clean_chroot.sh; needs root): the core, static and
# shared, is configured, built, installed and used by find_package, pkg-config, the examples (also
# that in Rust), the programs of docs/{cpp,c,cache,relative-attention}.md and a C program. Then
# nlohmann-json is installed and the same is done with the component `config`. A shared library must
# export the API only, a plugin that links the static core nothing of it, and the static core must
# be smaller than 8 MB, without the backward passes than 5.5 MB. The kernels are compiled three
# times, without ccache.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"

declare -A most_bytes=([static]=8000000 [inference]=5500000)

# ---- inside the chroot ----

results=$builds/sdk-results
note() { printf '| %s | %s |\n' "$1" "$2" | tee -a "$results" >&2; }

# Fails unless each symbol that a library exports is declared with SEXTANT_API in PREFIX/include.
only_api() {
  local library=$1 prefix=$2 declarations symbol name
  declarations=$(cat "$prefix"/include/sextant/{,*/,*/*/}*.h | sed 's,//.*,,' | tr '\n' ' ')
  nm -D --defined-only "$library" | awk '{print $3}' | sort -u >"$builds/symbols"
  while read -r symbol; do
    # sextant::attend<float>(...) and sextant::KvCache::fork(...) give attend and KvCache.
    name=$(c++filt "$symbol" | sed -E 's/^[^:]*sextant::([A-Za-z0-9_]+).*/\1/')
    grep -qE "SEXTANT_API [^;{]*\b$name" <<<"$declarations" ||
      fail "$library exports $(c++filt "$symbol"), which no installed header declares"
  done <"$builds/symbols"
  wc -l <"$builds/symbols"
}

# try KIND OPTIONS...: builds and installs one kind of library, uses it, and notes the result.
try() {
  local kind=$1 began=$SECONDS folder=$builds/sdk-$1 prefix=$builds/prefix-$1 file size count
  shift
  cmake --preset sdk -B "$folder" "$@"
  cmake --build "$folder" -j "$(nproc)"
  rm -rf "$prefix"
  cmake --install "$folder" --prefix "$prefix"
  CMAKE_GENERATOR="Unix Makefiles" tests/package/try_prefix.sh "$prefix" "$builds/try-$kind"
  file=$prefix/lib/libsextant_core.a
  if [[ -f $file ]]; then
    size=$(stat -c %s "$file")
    ((size < most_bytes[$kind])) || fail "$file: expected below ${most_bytes[$kind]}, but got $size"
    note "$kind core" "$size bytes (below ${most_bytes[$kind]})"
  else
    for file in "$prefix"/lib/libsextant_*.so; do
      count=$(only_api "$file" "$prefix") # a failure ends the script
      note "$(basename "$file") exports" "$count symbols, all of the API"
    done
  fi
  note "$kind libraries: configured, built, installed, used" "passed in $((SECONDS - began)) s"
}

inside() {
  mkdir -p "$builds"
  rm -f "$results"
  apt update
  # make is the build tool of CMake's default generator; pkg-config comes when it is used.
  apt install --no-install-recommends g++ cmake make libhwy-dev
  note packages "g++ $(g++ -dumpfullversion), CMake $(cmake --version | awk 'NR == 1 {print $3}'), \
Highway $(dpkg-query -W -f '${Version}' libhwy-dev)"
  if compgen -G '/usr/include/nlohmann' >/dev/null; then fail "nlohmann-json is here already"; fi
  cmake --preset sdk -B "$builds/sdk-static" # without pkg-config
  apt install --no-install-recommends pkg-config rustc
  try static
  try inference -DSEXTANT_INFERENCE=ON
  try shared -DBUILD_SHARED_LIBS=ON
  apt install --no-install-recommends nlohmann-json3-dev
  note "and nlohmann-json" "$(dpkg-query -W -f '${Version}' nlohmann-json3-dev)"
  try static -DSEXTANT_CONFIG=ON
  try shared -DSEXTANT_CONFIG=ON -DBUILD_SHARED_LIBS=ON
}

# ---- outside ----

write_page() {
  {
    cat <<EOF
# The check of the libraries for engines

This page is written by \`./check --sdk\`. In a Debian 12 with nothing but its base system, the
packages below are installed; the preset \`sdk\` is configured, built and installed; and the result
is used through \`find_package\` (\`tests/package/consumer\`, \`examples/cpp\`) and pkg-config (the
programs of [From C++](cpp.md), [From C](c.md), [the cache](cache.md) and [relative
attention](relative-attention.md), with the output that these pages show, and
\`tests/package/c_program.c\` as C99), and by \`examples/rust\` with Debian's rustc. \`inference\`
is \`-DSEXTANT_INFERENCE=ON\`. The second round adds the component \`config\`. Shared libraries must
export the API only, plugins that link the static core nothing of it (\`tests/package/plugin.*\`),
and no program needs libhwy.

| | |
| --- | --- |
| date | $(date +%F) |
| Sextant | commit $commit |
EOF
    cat "$system/sextant/build/sdk-results"
  } >"$root/docs/sdk-check.md"
}

case ${1:-} in
  -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
  --inside) inside; exit ;;
  '') ;;
  *) fail "unknown argument $1: expected none" ;;
esac
mkdir -p "$builds"
commit=$(git -C "$root" rev-parse --short=12 HEAD) # clean_chroot.sh clones it
system=$(mktemp -d "${TMPDIR:-/tmp}/sextant-sdk-XXXXXX")
trap 'rm -rf --one-file-system "$system"' EXIT
stage sdk "$root/scripts/clean_chroot.sh" --keep "$system" tests/check_sdk.sh --inside
((${#failed[@]})) || write_page
verdict
