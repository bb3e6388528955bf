#!/usr/bin/env bash
# Tests the steps of the release workflow that can run on one machine: checks
# .goreleaser.yaml, writes the shell completions, builds the programs of this platform as a
# snapshot, runs them, and compares their SBOM with the modules that Go recorded in them. It
# creates no archive, image, signature or release. The first run compiles GoReleaser and Syft,
# which takes minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export GOWORK=off
tools=$root/.cache/release
mkdir -p "$tools" .cache/chart

die() { printf 'release-check.sh: %s\n' "$*" >&2; exit 1; }

# They run for seconds and take minutes to compile, so they are compiled without optimization,
# except the standard library, which is in the build cache already.
compile() { GOGC=400 CGO_ENABLED=0 go -C "tools/$1" build -trimpath -gcflags='all=-N -l' -gcflags='std=' -ldflags='-s -w' -o "$tools/$1" "$2"; }
compile syft github.com/anchore/syft/cmd/syft
compile goreleaser github.com/goreleaser/goreleaser/v2
export PATH=$tools:$PATH SYFT_CHECK_FOR_APP_UPDATE=false

# The tests of deploy/checks lint and render the chart; packaging it needs the helm command.
skip=validate
command -v helm >/dev/null || skip=$skip,before

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# GoReleaser records the commit only if the repository has a remote, so use a clone.
if ! git remote get-url origin >/dev/null 2>&1; then
  git clone --quiet . "$work/source"
  cd "$work/source"
  mkdir -p .cache/chart
fi

goreleaser check
scripts/completions.sh
goreleaser build --snapshot --single-target --clean --skip="$skip"

commit=$(git rev-parse HEAD)
mkdir "$work/programs"
for program in callyard frontdoor worker approver; do
  file=$(find dist -type f -name "$program" -perm -u+x)
  [ -x "$file" ] || die "dist/ has no $program"
  cp "$file" "$work/programs/"
  version=$("$file" --version) || die "$program does not run"
  printf '%s\n' "$version"
  [[ $version == *${commit:0:7}* ]] || die "$program --version does not name the commit $commit"
  # Skip modules that are replaced by a folder of this repository: they have no version.
  go version -m "$file" | awk '$1 == "dep" { if (dep) print dep; dep = $2 "@" $3 } $1 == "=>" { dep = "" } END { if (dep) print dep }' >>"$work/linked"
done
sort -u "$work/linked" >"$work/modules"
[ -s "$work/modules" ] || die "the programs name no modules"
syft "$work/programs" --output "spdx-json=$work/sbom.json" --quiet
node -e '
  const read = (name) => require("fs").readFileSync(name, "utf8");
  const packages = new Set(JSON.parse(read(process.argv[1])).packages.map((p) => `${p.name}@${p.versionInfo}`));
  const missing = read(process.argv[2]).trim().split("\n").filter((m) => !packages.has(m));
  if (missing.length) { console.error("the SBOM lacks " + missing.join(", ")); process.exit(1); }
' "$work/sbom.json" "$work/modules" || die "the SBOM is not complete"
printf 'release-check.sh: the programs of this platform run, and their SBOM has all %s modules\n' "$(wc -l <"$work/modules")"
