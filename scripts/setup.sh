# Shared functions of ./run, ./check and scripts/*.sh: packages, configuration, build. The scripts
# source this file; it does nothing by itself.
#
# Its messages go to standard error, because standard output belongs to the command. Output of
# apt-get, CMake and Ninja goes to a log beside the build and is shown on failure.
#
#   SEXTANT_NO_APT=1   install no packages; use the installed ones
#   SEXTANT_PRESET     the CMake preset that ./run builds (release; `core` needs no libtorch)
#   SEXTANT_BUILD      the folder for builds, by default build/ in the source tree
#   SEXTANT_JOBS       parallel compilers, by default as many as cores and memory allow

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
builds=${SEXTANT_BUILD:-$root/build}
preset=${SEXTANT_PRESET:-release}

# Otherwise libgomp's threads spin after each parallel region and starve OpenBLAS's threads:
# training is then 2 to 3 times slower. libgomp reads the variable when it is loaded.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

build_packages=(g++ cmake ninja-build pkg-config ccache
  libhwy-dev libcli11-dev libtoml11-dev nlohmann-json3-dev libfmt-dev libpng-dev librsvg2-bin
  libyaml-dev zlib1g-dev)
torch_packages=(libtorch-dev libgloo-dev libopenblas0-pthread)
text_packages=(python3-doc) # its reST sources are the survey's training text
test_packages=(libgtest-dev libgmock-dev librapidcheck-dev libexpat1-dev python3 python3-numpy
  python3-yaml git)
torch_test_packages=(python3-torch)
# The versions of Debian 12: other versions give other findings.
lint_packages=(clang-format-14 clang-tidy-14 mkdocs)

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "${0##*/}: $*"
  exit 1
}

# logged LOG COMMAND...: runs the command with its output in LOG, which is shown on failure.
logged() {
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  ((status == 0)) || show_log "$log"
  return "$status"
}
# Shows the last 80 lines of a log; of a Ninja log, from the first failed command on. When CMake
# itself failed within Ninja ("FAILED: build.ninja"), its messages stand before that line.
show_log() {
  say "---- $1 ----"
  if grep '^FAILED: ' "$1" | grep -qv 'build\.ninja'; then
    sed -n '/^FAILED: /,$p' "$1"
  else
    cat "$1"
  fi | tail -n 80 >&2
  say "----"
}

# ---- checks ----

failed=()
# stage NAME COMMAND...: runs a check and prints one line with its time, and its log if it failed.
stage() {
  local name=$1 began=$SECONDS
  shift
  if logged "$builds/check-$name.log" "$@"; then
    say "ok      $name ($((SECONDS - began)) s)"
  else
    say "FAILED  $name ($((SECONDS - began)) s)"
    failed+=("$name")
  fi
}
# Ends a script after its last stage; fails if a stage failed.
verdict() {
  ((${#failed[@]} == 0)) || fail "failed: ${failed[*]}"
  say "All checks passed in $SECONDS s."
}

# ---- packages ----

# missing_of PACKAGES...: prints the packages that are not installed. One dpkg-query for all takes
# 15 ms, so that a call with nothing to install starts at once.
missing_of() {
  comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
      sed -n 's/^installed //p' | sort -u)
}

apt() {
  local root_by=()
  ((EUID == 0)) || root_by=(sudo)
  "${root_by[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
}

may_install() {
  ((EUID == 0)) || { command -v sudo && { sudo -n true || [[ -t 0 ]]; }; } >/dev/null 2>&1
}

# install PACKAGES...: installs the missing ones. Packages that the release does not have are
# reported once.
install() {
  [[ ${SEXTANT_NO_APT:-} != 1 ]] || return 0
  if ! command -v apt-get >/dev/null; then
    is_configured ||
      say "Not a Debian-like system: taking its libraries as they are (HACKING.md lists them)."
    return 0
  fi
  local missing there unavailable=$builds/unavailable-packages
  [[ -f $unavailable ]] || : >"$unavailable"
  mapfile -t missing < <(missing_of "$@" | grep -Fxv -f "$unavailable")
  ((${#missing[@]})) || return 0

  may_install || fail "packages are missing, and installing them needs root. Please run
    apt-get install --no-install-recommends ${missing[*]}
and then this again (or, to go on without them, SEXTANT_NO_APT=1 $0)."
  say "Installing ${#missing[@]} packages and what they need: ${missing[*]}"
  logged "$builds/apt-update.log" apt update ||
    say "apt-get update failed; going on with the old lists."
  mapfile -t there < <(apt-cache pkgnames | sort | comm -12 - <(printf '%s\n' "${missing[@]}"))
  ((${#there[@]} == 0)) ||
    logged "$builds/apt-install.log" apt install --no-install-recommends "${there[@]}" ||
    fail "apt-get could not install ${there[*]}"
  mapfile -t missing < <(missing_of "${missing[@]}")
  ((${#missing[@]} == 0)) && return 0
  say "This release does not have ${missing[*]}"
  printf '%s\n' "${missing[@]}" >>"$unavailable"
}

# ---- libtorch ----
#
# Debian's package is libtorch-dev. On releases without it (Ubuntu 24.04), Python's torch package
# has the same headers and libraries: the user's own package if it can be found, otherwise one that
# is installed under build/.

# All builds of PyPI for x86-64 include CUDA. Without its dependencies (several GB) torch cannot be
# imported, but libtorch_cpu.so needs only two of them: 550 MB to download, 1.2 GB on disk.
pip_torch=(torch==2.15.0 'nvidia-cuda-runtime==13.2.*' 'nvidia-cuda-cupti==13.2.*')

wants_torch() { [[ $preset == release || $preset == debug ]]; }
has_python_torch() { grep -qs '^SEXTANT_TORCH_ROOT:PATH=/' "$builds/$preset/CMakeCache.txt"; }

# python_torch PYTHON: prints the folder of the interpreter's torch. Fails if it has no headers, or
# was built with the old std::string ABI.
python_torch() {
  local folder
  folder=$("$1" -c 'import importlib.util as u
print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) || return 1
  [[ -f $folder/include/torch/library.h && -f $folder/lib/libtorch_cpu.so ]] || return 1
  ! grep -qs 'GLIBCXX_USE_CXX11_ABI=0' "$folder/share/cmake/Torch/TorchConfig.cmake" || return 1
  printf '%s\n' "$folder"
}

# Prints the folder of Python's torch; nothing if the system has libtorch, or if there is none and
# none may be installed, which CMake then reports.
find_python_torch() {
  local own=$builds/python
  [[ ! -f /usr/include/torch/library.h ]] || return 0
  python_torch python3 && return 0
  [[ ${SEXTANT_NO_APT:-} != 1 ]] || return 0
  install python3 python3-venv
  say "Installing ${pip_torch[0]} with pip, 550 MB, into $own"
  logged "$builds/venv.log" python3 -m venv "$own" ||
    fail "python3 cannot make a virtual environment"
  logged "$builds/pip.log" "$own/bin/pip" install --no-deps "${pip_torch[@]}" ||
    fail "pip could not install torch. SEXTANT_PRESET=core $0 does without it."
  python_torch "$own/bin/python" ||
    fail "the torch that pip installed cannot be used: see $builds/pip.log"
}

# ---- configure and build ----

cached() { grep -Fxqs "$1" "$builds/$preset/CMakeCache.txt"; }
# Whether the build folder is configured for this tree. A tree that was copied with its build folder
# would otherwise build the sources of the old one.
is_configured() {
  [[ -f $builds/$preset/build.ninja ]] && cached "CMAKE_HOME_DIRECTORY:INTERNAL=$root"
}

# Prints the number of parallel compilers. Memory limits it: a source that includes all of libtorch
# takes 1.3 GB to compile.
jobs() {
  local cores memory limit
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  [[ $limit == max ]] || ((limit / 1024 > memory)) || memory=$((limit / 1024))
  memory=$((memory / 1400000))
  ((memory < cores)) || memory=$cores
  echo $((memory > 1 ? memory : 1))
}

# configure ARGUMENTS...: the preset, if it is not configured yet or a `-DX=Y` of ARGUMENTS is new.
configure() {
  local argument stale=0
  is_configured || rm -rf "${builds:?}/$preset"
  for argument in "$@"; do
    argument=${argument#-D}
    cached "${argument%%=*}:BOOL=${argument#*=}" || stale=1
  done
  is_configured && ((!stale)) && return 0

  local arguments=("$@") torch
  if command -v ccache >/dev/null; then arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  if wants_torch && ! is_configured; then
    torch=$(find_python_torch)
    [[ -z $torch ]] || arguments+=("-DSEXTANT_TORCH_ROOT=$torch")
  fi
  say "Configuring $builds/$preset"
  (cd "$root" && logged "$builds/$preset-configure.log" \
    cmake --preset "$preset" -B "$builds/$preset" "${arguments[@]}") ||
    fail "CMake could not configure the build"
}

# Reads Ninja's output and shows its progress: on a terminal in one line, elsewhere in quarters.
show_steps() {
  local line quarter said=0 began=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    if [[ -t 2 ]]; then
      printf '\r\033[KBuilding: %d of %d' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
    else
      quarter=$((4 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      ((quarter <= said)) ||
        say "Building: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}, $((SECONDS - began)) s"
      said=$quarter
    fi
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# build TARGETS...: builds them in the folder of the preset.
build() {
  local log=$builds/$preset-build.log
  [[ -n ${CCACHE_DIR:-} || -w ${HOME:-/nowhere} ]] || export CCACHE_DIR=$builds/ccache
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "$builds/$preset" -j "${SEXTANT_JOBS:-$(jobs)}" "$@" 2>&1 |
    tee "$log" | show_steps; then
    show_log "$log"
    fail "the build failed"
  fi
}

# Locks the build folder, so that only one script at a time sets it up. Fails if it is locked.
try_lock_builds() {
  mkdir -p "$builds" 2>/dev/null && [[ -w $builds ]] ||
    fail "cannot write in $builds: set SEXTANT_BUILD to a folder of yours"
  exec 9>"$builds/.lock"
  flock -n 9
}
lock_builds() {
  try_lock_builds || {
    say "Another ./run or ./check is at work in $builds; waiting for it."
    flock 9
  }
}
unlock_builds() { exec 9>&-; }
