#!/usr/bin/env bash
# Uses an installed Sextant as other projects do, and fails if a step does:
#
#   tests/package/try_prefix.sh PREFIX WORK
#
#   * find_package: tests/package/consumer and examples/cpp, from PREFIX
#   * pkg-config: the programs of docs/{cpp,c,cache,relative-attention}.md, whose output is compared
#     with the page, and the C programs, from a copy of PREFIX in another place
#   * rustc, if there is one: examples/rust
#   * a plugin that links a static library for engines exports nothing of it, and no program needs
#     Highway's library
#   * each header that an installed header includes is installed
#
# Programs that need the component `config` are left out if it is not installed. CXX, CC, CXXFLAGS
# and CMAKE_GENERATOR are used as usual.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
prefix=$(realpath "$1") work=$(realpath -m "$2")
cxx=${CXX:-g++} cc=${CC:-gcc}
rm -rf "$work"
mkdir -p "$work"

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

for project in tests/package/consumer examples/cpp; do
  folder=$work/$(basename "$project")
  cmake -S "$root/$project" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx"
  cmake --build "$folder" -j "$(nproc)"
done
"$work/consumer/consumer"
"$work/cpp/alibi_and_t5"
"$work/cpp/decode_bf16"
[[ ! -e $work/cpp/rope_tables ]] || "$work/cpp/rope_tables" "$root/examples/yarn.json" 1000

# A link of that name serves as the other place: the files of pkg-config use their own folder.
ln -s "$prefix" "$work/moved"
libraries=$(dirname "$(dirname "$(find "$work/moved/" -name sextant-core.pc)")")
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries
has_config=0
! pkg-config --exists sextant-config || has_config=1
pkg-config --libs sextant-core | grep -qF "$work/moved" ||
  fail "sextant-core.pc: expected paths in $work/moved, but got $(pkg-config --libs sextant-core)"

# compile SOURCE PACKAGE OPTIONS...: a program beside its source, without the ending.
compile() {
  local source=$1 package=$2 compiler=("$cxx" -std=c++20)
  shift 2
  [[ $source != *.c ]] || compiler=("$cc" -std=c99 -Wall -Wextra -pedantic -Werror)
  # shellcheck disable=SC2046,SC2086 # options are words
  "${compiler[@]}" ${CXXFLAGS:-} "$@" "$source" -o "${source%.*}" \
    $(pkg-config --cflags --libs "$package") -lm
}

for page in cpp c cache relative-attention; do
  awk -v to="$work" -v page="$page" -f "$root/scripts/doc_programs.awk" "$root/docs/$page.md"
done
for source in "$work"/{cpp,cache,relative-attention}_*.cc "$work"/{c,relative-attention}_*.c; do
  package=sextant-core
  if grep -qE '"sextant/(rope_config/|sextant_config\.h)' "$source"; then
    ((has_config)) || continue
    package=sextant-config
  fi
  compile "$source" "$package"
  "${source%.*}" >"${source%.*}.got"
  diff "${source%.*}.out" "${source%.*}.got" || fail "$(basename "$source"): another output"
done

cp "$root/tests/package/c_program.c" "$work/program.c"
if ((has_config)); then
  compile "$work/program.c" sextant-config -DWITH_CONFIG
else
  compile "$work/program.c" sextant-core
fi
"$work/program"
cp "$root/tests/package/ggml_program.c" "$work"
compile "$work/ggml_program.c" sextant-core -I "$root/tests/c/ggml_stand_in"
"$work/ggml_program"
! ldd "$work/program" | grep libhwy || fail "the C program: expected to need no libhwy"

# C has no inline functions of the API, C++ has: there a plugin hides its own as well.
if [[ $(pkg-config --cflags sextant-core) == *-DSEXTANT_STATIC* ]]; then
  cp "$root"/tests/package/plugin.{c,cc} "$work"
  mkdir -p "$work/cxx" && mv "$work/plugin.cc" "$work/cxx/plugin.cc"
  compile "$work/plugin.c" sextant-core -shared -fPIC
  compile "$work/cxx/plugin.cc" sextant-core -shared -fPIC -fvisibility=hidden \
    -fvisibility-inlines-hidden
  for plugin in "$work/plugin" "$work/cxx/plugin"; do
    nm -D --defined-only "$plugin" | c++filt >"$plugin.symbols"
    grep -q ' plugin_version$' "$plugin.symbols" || fail "$plugin: expected plugin_version in it"
    ! grep -i 'sextant' "$plugin.symbols" || fail "$plugin: expected to export nothing of Sextant"
  done
fi

if command -v rustc >/dev/null; then
  read -ra libraries_of_core < <(pkg-config --libs-only-L --libs-only-l sextant-core)
  rustc --edition 2021 -O -D warnings "$root/examples/rust/main.rs" -o "$work/conformer" \
    "${libraries_of_core[@]}" -lm
  "$work/conformer"
fi

# Headers that are installed include installed headers only.
cd "$prefix/include"
missing=$(grep -rhoE '#include "sextant/[^"]+' sextant | sed 's/.*"//' | sort -u |
  while read -r header; do [[ -f $header ]] || echo "$header"; done)
[[ -z $missing ]] || fail "headers that installed headers include are not installed:" $missing
echo "An installed Sextant works (config: $has_config)."
