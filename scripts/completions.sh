#!/usr/bin/env bash
# Writes the shell completions of callyard to .cache/completions, for the archives of a release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off CGO_ENABLED=0
mkdir -p .cache/completions
for shell in bash zsh fish; do
  go run -trimpath ./cmd/callyard completion "$shell" >".cache/completions/callyard.$shell"
done
