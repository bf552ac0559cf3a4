#!/usr/bin/env bash
# Sets up everything weft needs: .venv with the pinned packages and the command `weft`, and a Java.
# Does only what is missing; a run with nothing to do takes well under a second.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=scripts/common.sh
. "$here/common.sh"
root="$(cd "$here/.." && pwd)"
cd "$root"

readonly VENV=.venv
readonly STAMP="$VENV/.weft-setup"

# What the environment was made from. Contents and not times, so that switching branches to and fro
# costs nothing; the path, because a moved .venv has commands that point to the old place.
wanted_stamp() {
  printf '%s\n' "$root"
  cat pyproject.toml constraints.txt | cksum
}

venv_works() {
  "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null
}

is_up_to_date() {
  [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$(wanted_stamp)" ] && [ -x "$VENV/bin/weft" ] && venv_works
}

make_venv() {
  local python
  if venv_works && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    return 0
  fi
  python="$("$here/python.sh" --install)"
  say "creating $VENV with $python"
  "$python" -m venv --clear "$VENV" || fail "$python could not create $root/$VENV" \
    "Look above for the reason; a full disk and a read-only folder are the usual ones."
}

pip_install() {
  local options=(--no-input --disable-pip-version-check)
  # Downloads of this size want their progress bar when somebody is watching, and no log otherwise.
  [ -t 1 ] || options+=(--quiet)
  # PIP_USER, if the machine sets it, is an error inside a virtual environment.
  PIP_USER=0 "$VENV/bin/python" -m pip install "${options[@]}" "$@" </dev/null ||
    fail "pip could not install the pinned packages" \
    "Look above for pip's own words. When they speak of a connection, a timeout or a version not found:" \
    "  no direct way out:      export HTTPS_PROXY=http://your-proxy:port" \
    "  a mirror must be used:  export PIP_INDEX_URL=https://your-mirror/simple" \
    "  its certificate:        export PIP_CERT=/path/to/ca-bundle.pem" \
    "  no network at all:      export PIP_NO_INDEX=1 PIP_FIND_LINKS=/folder/with/wheels" \
    "  a slow line:            export PIP_DEFAULT_TIMEOUT=120 PIP_RETRIES=10" \
    "When they speak of space: the packages need 2 GB here, and as much in TMPDIR while they unpack." \
    "Then run the same make command again; what was downloaded is kept."
}

install_packages() {
  rm -f "$STAMP"
  say "installing the pinned packages into $VENV; the first time takes a few minutes"
  # pip itself first, as a plain version: the old one that Python brings along says "conflict" when
  # a constrained package cannot be reached, and that would send the reader the wrong way.
  pip_install "$(sed -n '/^pip==/p' constraints.txt)"
  # Then what builds weft (hatchling) and PySpark (setuptools; it has no wheel), from the same pins:
  # an isolated build would fetch whatever version is newest that day.
  pip_install --constraint constraints.txt hatchling setuptools
  pip_install --constraint constraints.txt --no-build-isolation --editable '.[dev]'
  say "compiling the kernels that most runs need"
  "$VENV/bin/python" -m weft.cli.first_use </dev/null ||
    fail "the kernels cannot be compiled" "Look above for the reason."
  wanted_stamp >"$STAMP"
}

# Java first: it is the quick one, and a missing one should not come to light after the downloads.
java_home="$("$here/java.sh" --install)"
if ! is_up_to_date; then
  make_venv
  install_packages
fi
say "ready: $VENV/bin/weft, Java in $java_home"
