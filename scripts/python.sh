#!/usr/bin/env bash
# Prints the path of a Python (3.11 or newer) that can create virtual environments.
#
#   scripts/python.sh             look only
#   scripts/python.sh --install   look; if there is none, install it where that needs no question
#
# WEFT_PYTHON names the interpreter to use, and then no other is considered.
set -euo pipefail

# shellcheck source=scripts/common.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/common.sh"

# The versions that the pins were resolved for come first; `python3` may be newer than they are.
candidates=(python3.11 python3.12 python3.13 python3)
[ -z "${WEFT_PYTHON:-}" ] || candidates=("$WEFT_PYTHON")

# Asking the interpreter, not its name: a version manager's shim may exist with nothing behind it.
is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null
}

# Debian's python3 has neither module until python3-venv is installed.
has_venv() {
  "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 </dev/null
}

found=""
without_venv=""

# Sets `found` to the first usable Python, or else `without_venv` to one that lacks only venv.
find_python() {
  local name
  for name in "${candidates[@]}"; do
    if command -v "$name" >/dev/null 2>&1 && is_new_enough "$name"; then
      if has_venv "$name"; then
        found="$(command -v "$name")"
        return 0
      fi
      without_venv="${without_venv:-$name}"
    fi
  done
  return 1
}

if ! find_python && [ "${1:-}" = --install ] && [ -z "${WEFT_PYTHON:-}" ] && can_apt_install; then
  # python3-venv brings python3 along; the versioned package serves a python3.X beside the default.
  case "$without_venv" in
    python3.*) apt_install "$without_venv-venv" python3-venv || true ;;
    *) apt_install python3-venv || true ;;
  esac
  find_python || true
fi

if [ -n "$found" ]; then
  printf '%s\n' "$found"
elif [ -n "$without_venv" ]; then
  fail "$without_venv has no venv module" \
    "Debian, Ubuntu:  sudo apt-get install python3-venv" \
    "Then run the same make command again."
else
  fail "weft needs Python 3.11 or newer; looked for: ${candidates[*]}" \
    "Debian, Ubuntu:  sudo apt-get install python3 python3-venv   (Debian 12, Ubuntu 24.04 or later)" \
    "Fedora:          sudo dnf install python3.12" \
    "macOS:           brew install python@3.12" \
    "Or, where a Python is somewhere else: export WEFT_PYTHON=/path/to/that/python3" \
    "Then run the same make command again."
fi
