#!/usr/bin/env bash
# Runs all tests in two processes side by side: those that start Spark in one, the rest in the other.
# So there is one Spark session at a time, and the tests that use one core have one. Words given go
# to both. What the rest says is printed when Spark's tests are through.
set -uo pipefail

readonly NOTHING_SELECTED=5
rest="$(mktemp)"
trap 'rm -f "$rest"' EXIT

# PYTEST is several words, and must split.
# shellcheck disable=SC2086
$PYTEST -m "not spark and not soak" "$@" >"$rest" 2>&1 &
others=$!
# shellcheck disable=SC2086
$PYTEST -m "spark and not soak" "$@"
of_spark=$?
wait "$others"
of_others=$?
cat "$rest"

for status in "$of_spark" "$of_others"; do
  case "$status" in
    0 | "$NOTHING_SELECTED") ;;
    *) exit "$status" ;;
  esac
done
if [ "$of_spark" = "$NOTHING_SELECTED" ] && [ "$of_others" = "$NOTHING_SELECTED" ]; then
  exit "$NOTHING_SELECTED"
fi
