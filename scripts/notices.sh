#!/usr/bin/env bash
# Writes THIRD_PARTY_NOTICES.txt: the licences of the modules that the programs of a
# release link on any of its platforms. Identical texts are printed once.
#
#   scripts/notices.sh            write the file
#   scripts/notices.sh --check    fail if the file is outdated
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off CGO_ENABLED=0 LC_ALL=C
file=THIRD_PARTY_NOTICES.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

modules() {
  local os arch
  for os in linux darwin; do
    for arch in amd64 arm64; do
      GOOS=$os GOARCH=$arch go list -deps -f '{{with .Module}}{{if and .Version (not .Replace)}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/... ./deploy/images/demo
    done
  done | sort -u
}

modules >"$work/modules"
[ -s "$work/modules" ] || { printf 'notices.sh: go list named no modules\n' >&2; exit 1; }
mkdir "$work/texts"
# Every program contains the Go standard library.
printf 'Go %s %s\n' "$(go list -f '{{context.ReleaseTags}}' runtime | grep -o 'go1\.[0-9]*' | tail -n 1)" "$(go env GOROOT)" | cat - "$work/modules" >"$work/all"
while read -r path version dir; do
  shopt -s nullglob nocaseglob
  texts=("$dir"/licen[sc]e* "$dir"/copying* "$dir"/notice*)
  shopt -u nullglob nocaseglob
  if [ ${#texts[@]} -eq 0 ] || [ -z "$(find "${texts[@]}" -maxdepth 0 -type f)" ]; then
    printf 'notices.sh: %s %s has no licence file; find out its licence before you link it\n' "$path" "$version" >&2
    exit 1
  fi
  for text in "${texts[@]}"; do
    case $text in *.go) continue ;; esac
    [ -f "$text" ] || continue
    sum=$(tr -d '\r' <"$text" | sha256sum | cut -d ' ' -f 1)
    tr -d '\r' <"$text" >"$work/texts/$sum"
    printf '%s %s %s\n' "$path" "$version" "$sum" >>"$work/uses"
  done
done <"$work/all"

{
  printf 'Callyard contains the software below. Written by scripts/notices.sh; do not edit.\n'
  awk '!seen[$3]++ { print $3 }' "$work/uses" | while read -r sum; do
    printf '\n%s\n' "================================================================================"
    awk -v sum="$sum" '$3 == sum { print $1, $2 }' "$work/uses" | uniq
    printf '%s\n\n' "--------------------------------------------------------------------------------"
    cat "$work/texts/$sum"
  done
} | sed 's/[[:space:]]*$//' >"$work/notices"

if [ "${1-}" = --check ]; then
  if ! diff -u "$file" "$work/notices" >"$work/diff" 2>&1; then
    head -n 20 "$work/diff" >&2
    printf 'notices.sh: %s is stale; run make notices\n' "$file" >&2
    exit 1
  fi
else
  cp "$work/notices" "$file"
fi
