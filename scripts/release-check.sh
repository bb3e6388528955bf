#!/usr/bin/env bash
# Tests the steps of the release workflow that can run on one machine: checks
# .goreleaser.yaml, writes the shell completions, builds the programs of this platform as a
# snapshot, runs them, and compares their SBOM with the modules that Go recorded in them. It
# creates no archive, image, signature or release. The first run compiles GoReleaser, which takes
# minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export GOWORK=off
tools=$root/.cache/release
mkdir -p "$tools" .cache/chart

die() { printf 'release-check.sh: %s\n' "$*" >&2; exit 1; }

# They run for seconds and take minutes to compile, so they are compiled without optimization,
# except the standard library, which is in the build cache already.
compile() { GOGC=400 CGO_ENABLED=0 go -C "tools/$1" build -trimpath -gcflags='all=-N -l' -gcflags='std=' -ldflags='-s -w' -o "$tools/" "$2"; }
compile cyclonedx github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
compile goreleaser github.com/goreleaser/goreleaser/v2
export PATH=$tools:$PATH

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
modules=0
for program in callyard frontdoor worker approver; do
  file=$(find dist -type f -name "$program" -perm -u+x)
  [ -x "$file" ] || die "dist/ has no $program"
  version=$("$file" --version) || die "$program does not run"
  printf '%s\n' "$version"
  [[ $version == *${commit:0:7}* ]] || die "$program --version does not name the commit $commit"
  # Skip modules that are replaced by a folder of this repository: they have no version.
  go version -m "$file" | awk '$1 == "dep" { if (dep) print dep; dep = $2 "@" $3 } $1 == "=>" { dep = "" } END { if (dep) print dep }' >"$work/modules"
  [ -s "$work/modules" ] || die "$program names no modules"
  modules=$((modules + $(wc -l <"$work/modules")))
  cyclonedx-gomod bin -json -std -version v0.0.1 -output "$work/sbom.json" "$file"
  node -e '
    const read = (name) => require("fs").readFileSync(name, "utf8");
    const components = new Set(JSON.parse(read(process.argv[1])).components.map((c) => `${c.name}@${c.version}`));
    const missing = read(process.argv[2]).trim().split("\n").filter((m) => !components.has(m));
    if (missing.length) { console.error("the SBOM lacks " + missing.join(", ")); process.exit(1); }
  ' "$work/sbom.json" "$work/modules" || die "the SBOM of $program is not complete"
done
printf 'release-check.sh: the programs of this platform run, and their SBOMs have all modules, %s in sum\n' "$modules"
