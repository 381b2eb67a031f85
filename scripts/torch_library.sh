# Builds the library for the torch of an interpreter; scripts/setup.sh comes first.

# torch_library PYTHON: sets `version` (of torch) and `preset` (with-torch-VERSION), builds in
# build/$preset, and exports SEXTANT_LIBRARY and PYTHONPATH.
torch_library() {
  local python=$1 torch launcher=()
  torch=$(python_torch "$python") ||
    fail "$python has no torch that can be linked: 2.6 or later has what it takes"
  version=$("$python" -c 'import numpy, torch; print(torch.__version__)') ||
    fail "$python has no numpy beside its torch"
  preset=with-torch-${version%%+*}
  say "torch $version of $python"
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  (cd "$root" && logged "$builds/$preset-configure.log" cmake --preset release \
    -B "$builds/$preset" -DSEXTANT_TORCH_ROOT="$torch" -DSEXTANT_FAST_BUILD=OFF \
    "${launcher[@]}") || fail "CMake could not configure the build"
  build sextant_torch
  export SEXTANT_LIBRARY=$builds/$preset/lib/libsextant_torch.so PYTHONPATH=$root/python
}
