#!/usr/bin/env bash
# Runs the benchmark suites: scripts/bench.sh [SUITE...]. Without a suite it runs
# all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ $# -eq 0 ]; then
  set -- all
fi
for suite in "$@"; do
  go run ./cmd/callyard bench --suite "$suite"
done
