#!/usr/bin/env bash
# Summarizes the events of "go test -json" on stdin: a line for each package as it ends,
# failures immediately and again at the end, and skipped tests. It runs gotestsum, at the
# version in tools/gotestsum/go.mod.
#
# In addition, the last line counts passed, failed and skipped tests. The script fails if a
# test failed, if no test passed, or, with CI=true, if a test was skipped, because a skipped
# test proves nothing. It does not detect an interrupted run: the caller must check the exit
# status of go test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off # -modfile does not work in a workspace
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

status=0
go tool -modfile=tools/gotestsum/go.mod gotestsum --format pkgname-and-test-fails --format-icons text --format-hide-empty-pkg \
  --ignore-non-json-output-lines --post-run-command "sh -c 'env | grep ^TESTS_ >$counts'" --raw-command -- cat || status=1
# shellcheck disable=SC1090 # TESTS_TOTAL, TESTS_FAILED, TESTS_SKIPPED, TESTS_ERRORS
. "$counts"

# A package that fails as a whole counts as a failure, but not as a test.
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
