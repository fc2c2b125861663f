# Shared by the scripts of this folder; sourced, not run.

# Everything that is fetched or built outside the tree lives here.
cache_dir=${V3DEMU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/v3demu}

# step WHAT: a line of what begins now, bold on a terminal.
step() {
  local bold= plain=
  [ ! -t 2 ] || { bold=$'\033[1m' plain=$'\033[0m'; }
  printf '%s==> %s%s\n' "$bold" "$*" "$plain" >&2
}

# fail WHAT REMEDY: one line each, then exit.
fail() {
  printf 'v3demu: %s\n        what to do: %s\n' "$1" "${2:-see above}" >&2
  exit 1
}

# within SECONDS COMMAND...: ends a command that takes longer; what did not end by itself is named on stderr. In the
# foreground, so that Ctrl-C and passwords reach it.
within() {
  local seconds=$1 status=0
  shift
  timeout --foreground --kill-after=10 "$seconds" "$@" || status=$?
  if [ $status = 124 ]; then
    printf 'v3demu: ended after %s seconds: %s\n' "$seconds" "$*" >&2
  elif [ $status -gt 128 ]; then
    printf 'v3demu: died of signal %s: %s\n' "$(kill -l $((status - 128)))" "$*" >&2
  fi
  return $status
}
# Seconds for steps of a kind, on slow machines and lines.
readonly build_limit=14400 fetch_limit=3600 step_limit=300

# require_space DIRECTORY GIGABYTES
require_space() {
  local free
  free=$(df --output=avail -BG "$1" | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge "$2" ] || fail "only ${free} GB are free below $1" "free $2 GB, or set V3DEMU_CACHE to a larger disk"
}

# COMMAND 2>&1 | progress LOG: keeps what a long build says in LOG and shows how far ninja is: one line that changes on a
# terminal, elsewhere one every 30 seconds.
progress() {
  local line every=${V3DEMU_PROGRESS_SECONDS:-30} last=$SECONDS begin=$SECONDS
  while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]] || continue
    line="    ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps, $(((SECONDS - begin) / 60)) min"
    if [ -t 2 ]; then
      printf '\r\033[K%s' "$line" >&2
    elif ((SECONDS - last >= every)); then
      printf '%s\n' "$line" >&2
      last=$SECONDS
    fi
  done 3> "$1"
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# show_errors LOG: of a build that failed, its first errors, or its end.
show_errors() { grep -m 10 -E '^FAILED|error:|fatal' "$1" >&2 || tail -n 40 "$1" >&2; }

# Of all sources of the tree, which is the current folder.
check_format() {
  step "checking the format of the sources"
  git ls-files '*.cc' '*.h' '*.c' | within $step_limit xargs clang-format-14 --dry-run --Werror ||
    fail "some files are not formatted" "run clang-format-14 -i on them"
}

# install_packages NAME...: Debian packages that are not there yet; as root or by sudo.
install_packages() {
  local missing=() package
  for package; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  step "installing ${#missing[@]} Debian packages"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "packages are missing: ${missing[*]}" "run this command as root"
    as_root=(sudo)
  fi
  local limit=(timeout --foreground --kill-after=10 "$fetch_limit")  # what sudo starts only root can end
  "${as_root[@]}" "${limit[@]}" apt-get update -qq ||
    fail "the package lists could not be fetched" "check the network and /etc/apt/sources.list, then run this again"
  "${as_root[@]}" "${limit[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=600 "${missing[@]}" \
    >"${TMPDIR:-/tmp}/v3demu-apt.log" 2>&1 || {
    tail -n 5 "${TMPDIR:-/tmp}/v3demu-apt.log" >&2  # a container takes it along
    fail "Debian packages could not be installed (needed: ${missing[*]})" \
         "read ${TMPDIR:-/tmp}/v3demu-apt.log; this needs Debian 12 (bookworm) with its main archive enabled"
  }
}
