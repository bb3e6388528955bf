#!/usr/bin/env bash
# Runs every fuzz test of this repository in turn.
#
#   scripts/fuzz.sh              each for 30 s
#   scripts/fuzz.sh --list       folders and names, one pair per line
#   TIME=5m PKG=./pkg/bus scripts/fuzz.sh FuzzFrames    only this test
#
# Failing inputs are written to testdata/fuzz next to the test. Commit them with the fix,
# so that every later test run includes them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=${TIME:-30s}
only=${PKG:-}

list() {
  find . \( -name node_modules -o -name '.?*' \) -prune -o -name '*_test.go' -exec grep -H '^func Fuzz' {} + |
    sed -E 's|^(.*)/[^/]*_test\.go:func (Fuzz[A-Za-z0-9_]*)\(.*$|\1 \2|' | LC_ALL=C sort
}

if [ "${1-}" = --list ]; then
  list
  exit
fi

ran=0
failed=()
while read -r folder name; do
  if [ -n "$only" ] && [ "${only%/}" != "$folder" ]; then continue; fi
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  printf '%s %s\n' "$folder" "$name"
  ran=$((ran + 1))
  (cd "$folder" && go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -parallel 2 . </dev/null) || failed+=("$folder $name")
done < <(list)

if [ $ran -eq 0 ]; then
  printf 'fuzz.sh: there is no such fuzz test\n' >&2
  exit 2
fi
printf '%d fuzz tests, %d failed\n' "$ran" "${#failed[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  printf '  %s\n' "${failed[@]}"
  exit 1
fi
