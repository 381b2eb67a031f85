#!/usr/bin/env bash
# Builds the wheel of the Python package: the command `sextant`, the library of configurations, one
# library of operators for each of several torches, and the core, which they share.
#
#   scripts/make_wheel.sh                         for the torches of `torches` below
#   scripts/make_wheel.sh --torch 2.10.0,2.11.0   for these
#   scripts/make_wheel.sh --out DIR               writes the wheel there (build/wheel/dist)
#
# The last line of standard output is the path of the wheel. A library fits the torch of its minor
# version, with or without CUDA: it is linked to libtorch_cpu and libc10 only, by name. The
# torch of a version is that of build/torch-VERSION (scripts/torch_env.sh) if it is there; otherwise
# PyPI's wheel is downloaded without its dependencies and unpacked. It is never imported. Its own
# torch loads libgomp, so none is packed. auditwheel packs the other libraries of this machine
# (fmt, libpng, libyaml), and refuses symbols that a system with glibc 2.34 lacks.
#
# Each library takes about ten minutes of CPU time; ccache shortens the next build.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"
source "$root/scripts/packaging.sh"

torches=2.8.0,2.11.0,2.15.0
platform=manylinux_2_34_$(uname -m) # RHEL 9, Amazon Linux 2023, Ubuntu 22.04, Debian 12
work=$builds/wheel to=$builds/wheel/dist
while (($#)); do
  case $1 in
    --torch) torches=${2:-}; shift ;;
    --out) to=${2:-}; shift ;;
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
    *) fail "unknown argument $1: expected --torch VERSION,... or --out DIR" ;;
  esac
  (($#)) && shift || fail "expected a value after the last argument"
done
IFS=, read -ra versions <<<"$torches"
((${#versions[@]})) || fail "--torch: expected versions such as 2.11.0"
for version in "${versions[@]}"; do
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
    fail "--torch: expected versions such as 2.11.0, but got \"$version\""
  # GCC's new std::string ABI, which the library has, came to PyPI's torch with 2.7.
  [[ $(printf '%s\n' 2.7 "$version" | sort -V | head -n 1) == 2.7 ]] ||
    fail "--torch: expected 2.7 or later, but got $version"
done
[[ -n $to ]] || fail "--out: expected a folder"

lock_builds
install "${build_packages[@]}" binutils unzip
mkdir -p "$work" "$to"
to=$(cd "$to" && pwd)
packaging_tools || fail "pip could not install the tools"
export PATH=$packaging/bin:$PATH

# torch_root VERSION: prints the folder of that torch, with headers and libraries.
torch_root() {
  local version=$1 found unpacked=$work/torch-$1
  for found in "$builds/torch-$version"/lib/python3*/site-packages/torch; do
    [[ ! -f $found/include/torch/library.h ]] || { printf '%s\n' "$found"; return; }
  done
  if [[ ! -d $unpacked ]]; then
    rm -rf "$unpacked".part
    mkdir -p "$unpacked".part
    say "Downloading torch $version"
    logged "$work/download.log" "$packaging/bin/pip" download --no-deps --only-binary :all: \
      -d "$unpacked.part" "torch==$version" || fail "pip could not download torch $version"
    unzip -q "$unpacked.part"/torch-*.whl 'torch/include/*' torch/lib/libtorch_cpu.so \
      torch/lib/libc10.so torch/version.py -d "$unpacked.part"
    rm "$unpacked.part"/torch-*.whl
    mv "$unpacked.part" "$unpacked"
  fi
  printf '%s\n' "$unpacked/torch"
}

# compile NAME TARGET CMAKE_ARGUMENTS...: builds the target in build/wheel-NAME. The folders of all
# builds are equally deep, so that ccache finds what other builds have compiled.
compile() {
  local name=wheel-$1 target=$2 launcher=()
  shift 2
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  say "Building $target in $builds/$name"
  (cd "$root" && logged "$builds/$name-configure.log" cmake --preset release -B "$builds/$name" \
    -DBUILD_SHARED_LIBS=ON -DSEXTANT_TESTS=OFF -DSEXTANT_BENCH=OFF "${launcher[@]}" "$@") ||
    fail "CMake could not configure the build"
  preset=$name build "$target"
}

# needed FILE: prints the names of the libraries that it needs.
needed() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
# take FILE NAME RUNPATH: copies a program or library of a build into the package, without debug
# symbols, and the shared libraries of Sextant that it needs, such as the core, once.
take() {
  local own
  cp -L "$1" "$staged/$2"
  strip --strip-unneeded "$staged/$2"
  patchelf --set-rpath "$3" "$staged/$2"
  for own in $(needed "$staged/$2" | grep '^libsextant_' || true); do
    [[ -f $staged/lib/$own ]] || take "${1%/*/*}/lib/$own" "lib/$own" '$ORIGIN'
  done
}

staged=$work/package
rm -rf "$staged"
mkdir -p "$staged/lib" "$staged/bin" "$staged/licenses"

compile command sextant_command -DSEXTANT_TORCH=OFF
preset=wheel-command build sextant_config
take "$builds/wheel-command/bin/sextant" bin/sextant '$ORIGIN/../lib'
take "$builds/wheel-command/lib/libsextant_config.so" lib/libsextant_config.so '$ORIGIN'
ls "$staged"/lib/libsextant_core.so* >/dev/null || fail "the command has no shared core"

for version in "${versions[@]}"; do
  minor=${version%.*}
  torch=$(torch_root "$version")
  ! grep -qs 'GLIBCXX_USE_CXX11_ABI=0' "$torch/share/cmake/Torch/TorchConfig.cmake" ||
    fail "torch $version was built with GCC's old std::string ABI"
  compile "$minor" sextant_torch -DSEXTANT_COMMAND=OFF "-DSEXTANT_TORCH_ROOT=$torch"
  library=lib/libsextant_torch-$minor.so
  take "$builds/wheel-$minor/lib/libsextant_torch.so" "$library" '$ORIGIN'
  grep -aq "sextant-libtorch $version" "$staged/$library" ||
    fail "$library does not say that it was built for torch $version"
  unexpected=$(needed "$staged/$library" | grep -Fxv -e libtorch_cpu.so -e libc10.so |
    grep -Ex 'lib(torch|c10|gomp|cu|python).*' || true)
  [[ -z $unexpected ]] || fail "$library: expected libtorch_cpu and libc10 only, but it needs" \
    "$unexpected"
done

# The notices of the libraries of this machine that are in the wheel, as code or as files.
notice() { # PACKAGE
  cp "/usr/share/doc/$1/copyright" "$staged/licenses/$1.txt" ||
    fail "$1: expected its copyright file in /usr/share/doc"
}
for library in $(for file in "$staged"/{bin,lib}/*; do needed "$file"; done | sort -u |
  grep -Exv 'lib(sextant_.*|torch_cpu|c10|stdc\+\+|gcc_s|c|m|z)\.so.*|ld-linux.*'); do
  file=$(ldconfig -p | awk -v name="$library" '$1 == name && !found++ {print $NF}')
  package=$(dpkg-query -S "$(realpath "$file")" 2>/dev/null || dpkg-query -S "$file") ||
    fail "$library: expected a library of a Debian package, which has its licence"
  notice "${package%%:*}"
done
for package in nlohmann-json3-dev libcli11-dev libtoml11-dev; do notice "$package"; done

say "Packing"
rm -rf "$work/raw" "$work/repaired"
logged "$work/pack.log" "$packaging/bin/pip" wheel --no-deps --no-build-isolation -w "$work/raw" \
  -Cbuild.targets=all -Cbuild-dir="$work/pack" "-Ccmake.define.SEXTANT_PREBUILT=$staged" "$root" ||
  fail "pip could not pack the wheel"
logged "$work/audit.log" auditwheel repair --plat "$platform" --exclude libtorch_cpu.so \
  --exclude libc10.so --exclude libgomp.so.1 -w "$work/repaired" "$work"/raw/*.whl ||
  fail "auditwheel refuses the wheel: expected symbols of $platform only"
wheel=$(ls "$work"/repaired/*.whl)
! unzip -l "$wheel" | grep -E 'libgomp|libtorch_cpu|libc10' >&2 ||
  fail "$wheel: expected no library of torch in it"
size=$(stat -c %s "$wheel")
((size <= 60000000)) || fail "$wheel: expected at most 60 MB, but it has $size bytes"
cp "$wheel" "$to/"
say "${wheel##*/}: $((size / 1000)) kB"
printf '%s\n' "$to/${wheel##*/}"
