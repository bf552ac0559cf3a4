#!/usr/bin/env bash
# Runs all tests in two lanes side by side, one for each of two cores. Each lane takes the next part
# that nobody has taken, the longest first: tests that share a session of Spark; those that need
# none; those that kill and start Spark themselves; types; the kernels again without compiling.
# Words given go to all of pytest. What the first part says is seen at once, all else at the end.
set -uo pipefail

readonly NOTHING_SELECTED=5
readonly KERNEL_TESTS=tests/unit/kernels
readonly PARTS=(sharing others killing types plain_kernels)
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT

# PYTEST and TYPES are several words, and must split.
# shellcheck disable=SC2086
sharing() { $PYTEST -m "spark and not kills and not soak" "$@"; }

# shellcheck disable=SC2086
others() { $PYTEST -m "not spark and not soak" "$@"; }

# shellcheck disable=SC2086
killing() { $PYTEST -m "spark and kills and not soak" "$@"; }

# Types can fail a run, but say nothing of whether there was a test.
# shellcheck disable=SC2086
types() {
  echo "types:"
  ${TYPES:-true} && return "$NOTHING_SELECTED"
}

plain_kernels() {
  [ -d "$KERNEL_TESTS" ] || return "$NOTHING_SELECTED"
  echo "kernel tests again, without compiling (NUMBA_DISABLE_JIT=1):"
  # shellcheck disable=SC2086
  NUMBA_DISABLE_JIT=1 NUMBA_CACHE_DIR=.pytest_cache/no-jit/numba \
    $PYTEST -o cache_dir=.pytest_cache/no-jit "$@" "$KERNEL_TESTS"
}

# lane WORDS...: what one lane does; a folder can be made only once, so a part is taken only once.
lane() {
  local part
  for part in "${PARTS[@]}"; do
    mkdir "$place/$part" 2>/dev/null || continue
    if [ "$part" = "${PARTS[0]}" ]; then
      "$part" "$@"
    else
      "$part" "$@" >"$place/$part/told" 2>&1
    fi
    echo $? >"$place/$part/status"
  done
}

lane "$@" &
lane "$@"
wait

# The first failure counts; nothing selected only where no part found anything.
found="$NOTHING_SELECTED"
for part in "${PARTS[@]}"; do
  [ ! -f "$place/$part/told" ] || cat "$place/$part/told"
  status="$(cat "$place/$part/status")"
  case "$found/$status" in
    "$found/$NOTHING_SELECTED") ;;
    0/* | "$NOTHING_SELECTED"/*) found="$status" ;;
  esac
done
exit "$found"
