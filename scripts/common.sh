# Sourced by the other scripts. Written for bash 3.2, which is what macOS ships.

say() { printf 'weft set-up: %s\n' "$*" >&2; }

# fail WHAT [LINE...]: one clear message on standard error, then a non-zero exit.
fail() {
  printf '\nweft set-up: %s\n' "$1" >&2
  shift
  [ "$#" -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# Prints how to become root without a question: nothing (already root) or "sudo -n".
root_prefix() {
  if [ "$(id -u)" = 0 ]; then
    return 0
  fi
  # A password prompt would hang a run that has no terminal, so only passwordless sudo counts.
  if command -v sudo >/dev/null 2>&1 && sudo -n true >/dev/null 2>&1; then
    printf 'sudo -n'
    return 0
  fi
  return 1
}

can_apt_install() {
  command -v apt-get >/dev/null 2>&1 && root_prefix >/dev/null
}

# apt_install PACKAGE...: installs the first package that this release of the system offers.
apt_install() {
  local prefix package
  prefix="$(root_prefix)" || return 1
  # $prefix is empty or two words; it must split.
  # shellcheck disable=SC2086
  {
    # A stale package list is worth a try: the packages may be on a mirror that still answers.
    $prefix apt-get update -qq </dev/null >&2 || say "apt-get update failed; trying with the old package list"
    # Slim images lack this folder, and Java's installation fails without it.
    $prefix mkdir -p /usr/share/man/man1
    for package in "$@"; do
      say "installing $package with apt-get"
      if $prefix env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$package" </dev/null >&2; then
        return 0
      fi
    done
  }
  return 1
}
