#!/usr/bin/env bash
# Writes the generated files: the OpenAPI document and its clients.
#
#   scripts/generate.sh              the document into clients/, then the clients
#   scripts/generate.sh --into DIR   only the clients, from the existing document, into DIR
#   scripts/generate.sh --lock       the versions and hashes of PyPI packages: the requirements.txt files
#
# The generators are pinned: tools/oapi/go.mod, clients/typescript/package-lock.json
# and clients/python/requirements.txt. A test runs this with --into and compares.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export GOWORK=off # use each module alone, regardless of a developer's workspace
document=$root/clients/openapi.json

case ${1-} in
--lock)
  tools=$(mktemp -d)
  trap 'rm -rf "$tools"' EXIT
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check pip-tools==7.6.2
  for folder in clients/python e2e/clients-env e2e/clients-mcp e2e/models tools/schemathesis tools/tau2; do
    (cd "$folder" && "$tools/bin/pip-compile" --quiet --strip-extras --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --output-file requirements.txt requirements.in)
  done
  exit
  ;;
--into)
  into=$(mkdir -p "$2" && cd "$2" && pwd)
  ;;
"")
  into=$root/clients
  scripts/test.sh --clients
  go test ./internal/frontdoor/rest -run '^TestServedOpenAPIDocumentMatchesTheClients$' -count=1 -update
  ;;
*)
  printf 'generate.sh: unknown argument %s\n' "$1" >&2
  exit 2
  ;;
esac

mkdir -p "$into/go" "$into/typescript/src" "$into/python/callyard"

(
  cd clients/go
  go tool -modfile="$root/tools/oapi/go.mod" oapi-codegen -config oapi-codegen.yaml -o "$into/go/client.gen.go" "$document"
  # The names "." and ".." must remain path segments.
  sed -i -E '/operationPath := fmt\.Sprintf/s/pathParam[0-9]+/segment(&)/g' "$into/go/client.gen.go"
)

node clients/typescript/node_modules/openapi-typescript/bin/cli.js "$document" --output "$into/typescript/src/schema.ts" >/dev/null

# The generator runs ruff from the PATH.
adapted=$(mktemp)
trap 'rm -f "$adapted"' EXIT
PATH=$root/.cache/python/bin:$PATH
python clients/python/adapt.py "$document" >"$adapted"
rm -rf "$into/python/callyard/rest"
openapi-python-client generate --path "$adapted" --meta none --overwrite --fail-on-warning \
  --config clients/python/openapi-python-client.yaml --output-path "$into/python/callyard/rest" >/dev/null
# The names "." and ".." must remain path segments here, too.
find "$into/python/callyard/rest/api" -name '*.py' -exec sed -i -E \
  -e 's/^from urllib\.parse import quote$/from ....paths import segment/' -e 's/quote\(str\(([a-z_]+)\), safe=""\)/segment(\1)/' {} +
# A newer front door may send values that the document of this version does not have. The single value
# of an enumeration distinguishes schemas, such as the outcomes of a call, and stays the only one.
for model in $(grep -l '(StrEnum):$' "$into/python/callyard/rest/models"/*.py); do
  if [ "$(grep -cE '^    [A-Z0-9_]+ = ' "$model")" -gt 1 ]; then
    sed -i -E -e 's/^from enum import StrEnum$/from ...enums import OpenEnum/' -e 's/^(class \w+)\(StrEnum\):$/\1(OpenEnum):/' "$model"
  fi
done
python clients/python/dicts.py "$document" "$into/python/callyard/rest"
ruff format --quiet --isolated --no-cache --line-length 120 "$into/python/callyard/rest"
