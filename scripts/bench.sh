#!/bin/sh
# Runs the load generator on all targets: the go-sdk and our session directly on
# the everything server, Callyard in one process, Callyard in three. Arguments are
# passed to `callyard bench`: --quick for a first look, --endpoint name=url for a peer.
# Prints the table, and writes the figures and the chart to bench-out.
set -eu
cd "$(dirname "$0")/.."

if [ ! -d e2e/servers/node_modules ]; then
	(cd e2e/servers && npm ci --no-audit --no-fund)
fi
go build -o bin/ ./cmd/callyard ./cmd/frontdoor ./cmd/worker github.com/nats-io/nats-server/v2
GOWORK=off go -C bench build -o ../bin/ ./cmd/callyard-bench
sync # write the build output to disk before anything is measured
exec bin/callyard bench --bin bin --out bench-out "$@"
