#!/usr/bin/env bash
# Builds ggml from the sources in the package llama-cpp-python of PyPI (75 MB), with its CPU backend
# alone, for this processor, into build/ggml, and prints its version. A second call builds nothing.
#
#   bench/get_ggml.sh
#   cmake -Dggml_DIR=$PWD/build/ggml/lib/cmake/ggml build/release
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/setup.sh"

version=0.3.36
hash=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
prefix=$builds/ggml

get_ggml() {
  local work=$builds/ggml.part python=$builds/ggml.part/python/bin/python
  rm -rf "$work" "$prefix"
  mkdir -p "$work/source"
  python3 -m venv "$work/python"
  echo "llama-cpp-python==$version --hash=sha256:$hash" >"$work/requirements"
  "$python" -m pip --disable-pip-version-check download --no-deps --require-hashes \
    --no-binary llama-cpp-python -r "$work/requirements" -d "$work"
  tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work/source" --strip-components=4 \
    "llama_cpp_python-$version/vendor/llama.cpp/ggml"
  touch "$work/source/ggml.pc.in" # which the package lacks
  cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
    -DGGML_NATIVE=ON -DGGML_LLAMAFILE=ON -DGGML_OPENMP=OFF \
    -DGGML_BUILD_TESTS=OFF -DGGML_BUILD_EXAMPLES=OFF
  ninja -C "$work/build" -j "${SEXTANT_JOBS:-$(jobs)}" install
  echo "$version" >"$prefix/version"
  rm -rf "$work"
}

mkdir -p "$builds"
install "${build_packages[@]}" python3 python3-venv
if [[ $(cat "$prefix/version" 2>/dev/null) != "$version" ]]; then
  say "Building ggml from llama-cpp-python $version"
  logged "$builds/ggml.log" get_ggml || fail "ggml could not be built"
fi
config=$prefix/lib/cmake/ggml/ggml-config.cmake
echo "$(sed -n 's/^set(GGML_VERSION "\(.*\)")/\1/p' "$config") of llama-cpp-python $version"
