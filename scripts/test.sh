#!/usr/bin/env bash
# Runs all tests in two lanes side by side, one for each of two cores: in one those that share a
# session of Spark; in the other all that need none, the kernels again without compiling, and what
# kills and starts Spark itself. Words given go to all. What the second lane says is printed last.
set -uo pipefail

readonly NOTHING_SELECTED=5
readonly KERNEL_TESTS=tests/unit/kernels
told="$(mktemp)"
trap 'rm -f "$told"' EXIT

# PYTEST is several words, and must split.
# shellcheck disable=SC2086
second_lane() {
  local statuses=()
  $PYTEST -m "not spark and not soak" "$@"
  statuses+=($?)
  if [ -d "$KERNEL_TESTS" ]; then
    echo "kernel tests again, without compiling (NUMBA_DISABLE_JIT=1):"
    NUMBA_DISABLE_JIT=1 NUMBA_CACHE_DIR=.pytest_cache/no-jit/numba \
      $PYTEST -o cache_dir=.pytest_cache/no-jit "$@" "$KERNEL_TESTS"
    statuses+=($?)
  fi
  $PYTEST -m "spark and kills and not soak" "$@"
  statuses+=($?)
  worst_of "${statuses[@]}"
}

# worst_of STATUS...: the first failure; nothing selected only where no part found anything.
worst_of() {
  local status found="$NOTHING_SELECTED"
  for status in "$@"; do
    case "$status" in
      0) found=0 ;;
      "$NOTHING_SELECTED") ;;
      *) return "$status" ;;
    esac
  done
  return "$found"
}

second_lane "$@" >"$told" 2>&1 &
second=$!
# shellcheck disable=SC2086
$PYTEST -m "spark and not kills and not soak" "$@"
of_first=$?
wait "$second"
of_second=$?
cat "$told"
worst_of "$of_first" "$of_second"
