#!/usr/bin/env bash
# Builds the cuda backend and its programs with nvcc and g++ alone, for machines with a GPU that may
# have no CMake, Highway, GoogleTest or libtorch.
#
#   scripts/build_cuda.sh FOLDER TARGET...
#
#   kernels    FOLDER/libsextant_cuda.so, for the architectures of SEXTANT_CUDA_ARCHITECTURES:
#              numbers such as "80 90", by default those of the GPUs of this machine
#   card_test  FOLDER/card_test, from tests/attention/cuda/card_test.cc
#   shim       FOLDER/libsextant_shim.so, from bench/cuda/
#
# Objects are compiled again when any source is newer. FOLDER/*.ptxas contain the registers and
# spills that ptxas reports. SEXTANT_CXXFLAGS adds flags of g++ (a folder has one set of them), and
# SEXTANT_JOBS compilers run at a time, by default one for each core.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
case ${1:-} in
  '' | -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "${BASH_SOURCE[0]}"; exit ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
cd "$root"
jobs=${SEXTANT_JOBS:-$(nproc)}

fail() {
  printf 'build_cuda.sh: %s\n' "$*" >&2
  exit 1
}

# newest_of FILES AND FOLDERS...: prints the time of the newest of them.
newest_of() { find "$@" -type f -printf '%T@\n' | sort -n | tail -n 1; }
# is_fresh FILE: whether it is newer than the sources, whose newest has the time `newest`.
is_fresh() {
  [[ -f $1 && $(printf '%s\n%s\n' "$newest" "$(stat -c %.9Y "$1")" | sort -n | tail -n 1) != \
    "$newest" ]]
}

# object_of SOURCE: prints the object of a source.
object_of() { printf '%s/%s.o\n' "$folder" "${1//\//_}"; }

commands=()
# compile SOURCE OUTPUT COMMAND...: queues the command, which prints into OUTPUT, unless the object
# is fresh.
compile() {
  local source=$1 output=$2 object
  shift 2
  object=$(object_of "$source")
  ! is_fresh "$object" || return 0
  commands+=("began=\$SECONDS; rm -f '$object'
    if ! $(printf '%q ' "$@" -c "$source" -o "$object.new") >'$output' 2>&1; then
      cat '$output' >&2; exit 255 # xargs then starts no other
    fi
    mv '$object.new' '$object'; echo \"compiled $source (\$((SECONDS - began)) s)\"")
}
run_commands() {
  ((${#commands[@]} == 0)) ||
    printf '%s\0' "${commands[@]}" | xargs -0 -P "$jobs" -I{} bash -c {} ||
    fail "a compiler failed"
  commands=()
}

read -ra more_flags <<<"${SEXTANT_CXXFLAGS:-}"
host_flags=(-std=c++20 -O2 -fPIC -DNDEBUG "-I$root" "${more_flags[@]}")
# compile_host SOURCES...: queues sources for g++ and adds their objects to `objects`.
compile_host() {
  local source
  for source in "$@"; do
    compile "$source" "$(object_of "$source").log" g++ "${host_flags[@]}"
    objects+=("$(object_of "$source")")
  done
}
# The core without its CPU backends, which need Highway.
core() {
  compile_host sextant/attention/*.cc sextant/attention/{reference,cuda}/*.cc \
    sextant/position/*.cc sextant/base/{executor,workspace,aligned_memory}.cc \
    tests/attention/cuda/no_cpu.cc
}
# The kernels on fibers, with few instances, since they take long to compile.
fibers() {
  local source
  compile_host tests/attention/cuda/{fibers,fiber_backend}.cc
  for source in sextant/attention/cuda/kernels/{bfloat16,float16,float32,rows}.cu; do
    compile "$source" "$(object_of "$source").log" g++ "${host_flags[@]}" \
      -DSEXTANT_CUDA_FEW_INSTANCES -xc++ -Wno-unknown-pragmas
    objects+=("$(object_of "$source")")
  done
}

find_nvcc() {
  command -v nvcc || { [[ ! -x /usr/local/cuda/bin/nvcc ]] || echo /usr/local/cuda/bin/nvcc; }
}
kernels() {
  local architectures=${SEXTANT_CUDA_ARCHITECTURES:-}
  local newest nvcc targets=() more=() objects=() name source
  newest=$(newest_of sextant/attention/cuda/{kernels,arguments.h,driver.h})
  nvcc=$(find_nvcc)
  [[ $nvcc ]] || fail "there is no nvcc in PATH or /usr/local/cuda/bin"
  [[ $architectures ]] || targets=(-arch=native)
  for name in $architectures; do targets+=(-gencode "arch=compute_$name,code=sm_$name"); done
  # Functions of one source are optimised in parallel where there are cores for it.
  ((jobs < 8)) || more=("--split-compile=$((jobs / 4))")
  [[ $architectures == "$(cat "$folder/architectures" 2>/dev/null)" ]] || rm -f "$folder"/kernel-*.o
  echo "$architectures" >"$folder/architectures"
  for name in bfloat16 float16 float32 rows driver; do
    # Names of their own, since fibers compile the same sources.
    source=sextant/attention/cuda/kernels/$name.cu
    object_of() { printf '%s/kernel-%s.o\n' "$folder" "$name"; }
    compile "$source" "$folder/$name.ptxas" "$nvcc" -std=c++20 -O3 "-I$root" "${targets[@]}" \
      -Xcompiler -fPIC -Xptxas=-v --compress-mode=size "${more[@]}"
    objects+=("$folder/kernel-$name.o")
  done
  object_of() { printf '%s/%s.o\n' "$folder" "${1//\//_}"; }
  run_commands
  "$nvcc" -shared "${targets[@]}" -o "$folder/libsextant_cuda.so" "${objects[@]}"
}

card_test() {
  local newest objects=()
  newest=$(newest_of sextant tests/attention bench/cuda)
  core
  fibers
  compile_host tests/attention/{bounds,tensor,random_score,outcome,rounded_products}.cc \
    tests/attention/cuda/{device_call,card_test}.cc
  run_commands
  g++ "${more_flags[@]}" -o "$folder/card_test" "${objects[@]}" -ldl -lpthread
}
shim() {
  local newest objects=()
  newest=$(newest_of sextant tests/attention bench/cuda)
  core
  fibers
  compile_host bench/cuda/*.cc
  run_commands
  g++ "${more_flags[@]}" -shared -o "$folder/libsextant_shim.so" "${objects[@]}" -ldl -lpthread
}

for target in "$@"; do
  case $target in
    kernels | card_test | shim) "$target" ;;
    *) fail "expected kernels, card_test or shim, but got $target" ;;
  esac
done
