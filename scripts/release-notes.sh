#!/usr/bin/env bash
# Prints the section of CHANGELOG.md for a tag, such as v1.2.3: the notes of a release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tag=${1-}
[[ $tag == v* ]] || { printf 'release-notes.sh: name a tag such as v1.2.3\n' >&2; exit 2; }
notes=$(awk -v heading="## [${tag#v}]" 'index($0, "## ") == 1 { inside = index($0, heading) == 1; next } inside' CHANGELOG.md)
[ -n "${notes//[[:space:]]/}" ] || {
  printf 'release-notes.sh: CHANGELOG.md has no section "## [%s]"; write it before the tag\n' "${tag#v}" >&2
  exit 1
}
printf '%s\n' "$notes"
