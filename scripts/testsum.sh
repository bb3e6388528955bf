#!/usr/bin/env bash
# Reads the events of "go test -json" on stdin and prints what people want to see: a line
# for each package as it ends, what failed, at once and again at the end, and what was
# skipped. That is gotestsum, at the version in tools/gotestsum/go.mod.
#
# What it does not do is done here: the last line counts what passed, failed and was
# skipped, and the run fails when a test failed, when none passed, or, with CI=true, when
# one was skipped: a skipped test proves nothing. A run that was ended is for the caller to
# see, by the status of go test itself.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off # -modfile does not go with a workspace
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

status=0
go tool -modfile=tools/gotestsum/go.mod gotestsum --format pkgname-and-test-fails --format-icons text --format-hide-empty-pkg \
  --ignore-non-json-output-lines --post-run-command "sh -c 'env | grep ^TESTS_ >$counts'" --raw-command -- cat || status=1
# shellcheck disable=SC1090 # TESTS_TOTAL, TESTS_FAILED, TESTS_SKIPPED, TESTS_ERRORS
. "$counts"

# A package that failed as a whole is counted as failed, and is no test.
passed=$((TESTS_TOTAL > TESTS_FAILED + TESTS_SKIPPED ? TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED : 0))
if [ "$TESTS_FAILED" -gt 0 ]; then
  status=1
fi
if [ $passed -eq 0 ]; then
  status=1
  echo "no test passed"
fi
if [ "$TESTS_SKIPPED" -gt 0 ] && [ "${CI-}" = true ]; then
  status=1
  echo "skipped tests fail this run, because CI=true"
fi
echo "$passed passed, $TESTS_FAILED failed, $TESTS_SKIPPED skipped"
exit $status
