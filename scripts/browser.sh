#!/usr/bin/env bash
# Looks for a Chromium and its driver, with which the pages of `weft ui` are tested.
#
#   scripts/browser.sh             look only
#   scripts/browser.sh --install   look; if there is none, install it where that needs no question
#
# Nothing but those tests needs it; without, they are skipped.
set -euo pipefail

# shellcheck source=scripts/common.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/common.sh"

find_browser() {
  command -v chromedriver >/dev/null 2>&1 &&
    { command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; }
}

find_browser && exit 0

if [ "${1:-}" = --install ] && can_apt_install; then
  # The driver brings the Chromium of the same version along.
  apt_install chromium-driver && find_browser && exit 0
fi

say "no Chromium with its driver was found; tests of the page are skipped"
say "Debian: sudo apt-get install chromium-driver"
exit 1
