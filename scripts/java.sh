#!/usr/bin/env bash
# Prints the home of a Java that Spark can run on (17 or newer).
#
#   scripts/java.sh             look only
#   scripts/java.sh --install   look; if there is none, install it where that needs no question
#
# Looks in JAVA_HOME, then at `java` on the PATH, then in the folders of WEFT_JVM_DIRS
# (colon-separated; the usual places when unset).
set -euo pipefail

readonly MINIMUM=17
readonly USUAL_JVM_DIRS="/usr/lib/jvm:/Library/Java/JavaVirtualMachines:/opt/homebrew/opt:/usr/local/opt"
jvm_dirs="${WEFT_JVM_DIRS-$USUAL_JVM_DIRS}"

# shellcheck source=scripts/common.sh
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/common.sh"

# property NAME SETTINGS: one value out of what -XshowSettings:properties prints.
property() {
  printf '%s\n' "$2" | sed -n "s/^ *$1 = //p"
}

# home_of JAVA: prints the home of that java if it is new enough. The java itself is asked, because
# the command on the PATH is usually a chain of links (or, on macOS, a stub with no Java behind it).
home_of() {
  local settings version home
  [ -x "$1" ] || return 1
  settings="$("$1" -XshowSettings:properties -version 2>&1 </dev/null)" || return 1
  version="$(property 'java\.specification\.version' "$settings")"
  home="$(property 'java\.home' "$settings")"
  version="${version#1.}" # Java 8 calls itself 1.8
  case "$version" in
    '' | *[!0-9]*) return 1 ;;
  esac
  [ "$version" -ge "$MINIMUM" ] && [ -n "$home" ] || return 1
  printf '%s\n' "$home"
}

find_java() {
  local on_path java dir
  if [ -n "${JAVA_HOME:-}" ]; then
    home_of "$JAVA_HOME/bin/java" && return 0
    say "JAVA_HOME=$JAVA_HOME holds no Java $MINIMUM or newer; looking elsewhere"
  fi
  if on_path="$(command -v java)"; then
    home_of "$on_path" && return 0
  fi
  local IFS=:
  for dir in $jvm_dirs; do
    for java in "$dir"/*/bin/java "$dir"/*/Contents/Home/bin/java; do
      home_of "$java" && return 0
    done
  done
  return 1
}

find_java && exit 0

if [ "${1:-}" = --install ] && can_apt_install; then
  # Newer releases of Debian no longer carry 17; Spark runs on 21 as well.
  if apt_install openjdk-17-jre-headless openjdk-21-jre-headless; then
    find_java && exit 0
  fi
  say "apt-get could not install Java"
fi

fail "Spark needs Java $MINIMUM or newer, and none was found" \
  "Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless" \
  "Fedora:          sudo dnf install java-21-openjdk-headless" \
  "macOS:           brew install openjdk@17" \
  "Or, where a Java is somewhere else: export JAVA_HOME=/path/to/that/java (the folder that has bin/java)" \
  "Then run the same make command again."
