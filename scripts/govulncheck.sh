#!/usr/bin/env bash
# Searches for known vulnerabilities in the code that the programs and the Go client call.
# Exit code 3: a vulnerability was found. 4: the vulnerability database did not respond,
# so nothing was checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off CGO_ENABLED=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
tool=$PWD/tools/govulncheck/go.mod
for module in . clients/go; do
  status=0
  (cd "$module" && go tool -modfile="$tool" govulncheck ./...) >"$log" 2>&1 || status=$?
  cat "$log"
  if [ $status -ne 0 ] && grep -qE 'fetching vulnerabilities|vuln\.go\.dev' "$log" && grep -qE 'dial tcp|no such host|lookup |timeout|connection refused|proxyconnect|HTTP GET' "$log"; then
    printf 'govulncheck.sh: NOT CHECKED: the vulnerability database cannot be reached. Run it where https://vuln.go.dev answers.\n' >&2
    exit 4
  fi
  [ $status -eq 0 ] || exit $status
done
