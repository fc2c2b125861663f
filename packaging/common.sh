# Shared by the scripts of this folder; sourced, not run.

# Everything that is fetched or built outside the tree lives here.
cache_dir=${V3DEMU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/v3demu}

step() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }

# fail WHAT REMEDY: one line each, then exit.
fail() {
  printf 'v3demu: %s\n        what to do: %s\n' "$1" "${2:-see above}" >&2
  exit 1
}

# require_space DIRECTORY GIGABYTES
require_space() {
  local free
  free=$(df --output=avail -BG "$1" | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge "$2" ] || fail "only ${free} GB are free below $1" "free $2 GB, or set V3DEMU_CACHE to a larger disk"
}
