#!/usr/bin/env bash
# Runs a command on a clean clone in a fresh Debian with nothing but the base system.
#
#   scripts/clean_chroot.sh ./run explain --help        HEAD, on Debian 12
#   scripts/clean_chroot.sh --ref c4e4547 ./check --quick
#   scripts/clean_chroot.sh --suite trixie --keep /tmp/sextant-13 ./run
#
#   --ref REF      the commit to clone (HEAD). Changes that are not committed are not in the clone.
#   --suite NAME   bookworm (Debian 12), trixie (13), or another suite that debootstrap supports
#   --keep FOLDER  makes the system in FOLDER and leaves it there; the clone is FOLDER/sextant. An
#                  existing folder is used unchanged, so a second call continues in it. Without this
#                  option the system is made in a temporary folder and removed.
#   --mirror URL   the Debian archive to install from
#
# The command runs as root in the clone, with the caller's network settings and proxy variables. Its
# other environment variables are HOME, PATH, TERM, LANG, SEXTANT_*, CCACHE_* and CI. The script
# returns the exit status of the command. debootstrap makes the base system once for each suite,
# under build/; it needs root and the package debootstrap.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/setup.sh"

ref=HEAD suite=bookworm keep='' mirror=http://deb.debian.org/debian
while (($#)); do
  case $1 in
    -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/d;p}' "$0"; exit ;;
    --ref | --suite | --keep | --mirror)
      (($# >= 2)) || fail "$1: expected a value"
      declare "${1#--}=$2"
      shift 2 ;;
    --) shift; break ;;
    -*) fail "unknown option $1: expected --ref, --suite, --keep or --mirror" ;;
    *) break ;;
  esac
done
(($#)) || fail "expected a command to run in the clone, such as ./run --help"
((EUID == 0)) || fail "needs root, for debootstrap and chroot"
commit=$(git -C "$root" rev-parse --verify --quiet "$ref^{commit}") ||
  fail "--ref: expected a commit of $root, but got \"$ref\""
mkdir -p "$builds/chroot"
command -v debootstrap >/dev/null || install debootstrap

# ---- the base system, made once per suite ----

base=$builds/chroot/$suite
if [[ ! -f $base/etc/debian_version ]]; then
  say "Making the base system of $suite in $base"
  rm -rf "$base.new"
  logged "$builds/chroot/$suite.log" debootstrap --variant=minbase --include=ca-certificates \
    "$suite" "$base.new" "$mirror" || fail "debootstrap could not make $suite from $mirror"
  mv "$base.new" "$base"
fi

# ---- a copy of the base system, with the clone ----

if [[ -n $keep ]]; then
  system=$(realpath -m "$keep")
else
  system=$(mktemp -d "${TMPDIR:-/tmp}/sextant-chroot-XXXXXX")
  trap 'rm -rf --one-file-system "$system"' EXIT
fi
if [[ ! -d $system/sextant ]]; then
  mkdir -p "$system"
  cp -a --reflink=auto "$base/." "$system"
  cp -L /etc/resolv.conf "$system/etc/resolv.conf"
  git clone --quiet --no-local --no-checkout "$root" "$system/sextant"
  git -C "$system/sextant" checkout --quiet --detach "$commit"
fi

# ---- the command; its mounts disappear with its own mount namespace ----

variables=(HOME=/root "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  "TERM=${TERM:-dumb}" LANG=C.UTF-8)
while IFS= read -r name; do
  variables+=("$name=${!name}")
done < <(compgen -e | grep -E '^(SEXTANT_|CCACHE_|CI$|https?_proxy$|HTTPS?_PROXY$)' || true)

# shellcheck disable=SC2016 # the inner shell expands the variables
status=0
unshare --mount --propagation private bash -euc '
  system=$1
  shift
  mount -t proc proc "$system/proc"
  mount --rbind /dev "$system/dev"
  exec chroot "$system" "$@"
' bash "$system" /usr/bin/env -i "${variables[@]}" \
  bash -c 'cd /sextant && exec "$@"' bash "$@" || status=$?
exit "$status"
