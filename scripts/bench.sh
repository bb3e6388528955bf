#!/bin/sh
# Runs the load generator over everything: the go-sdk and our session straight on
# the everything server, Callyard in one process, Callyard in three. Arguments go
# on to `callyard bench`: --quick for a first look, --endpoint name=url for a peer.
# The table is printed, the figures and the picture go to bench-out.
set -eu
cd "$(dirname "$0")/.."

if [ ! -d e2e/servers/node_modules ]; then
	(cd e2e/servers && npm ci --no-audit --no-fund)
fi
go build -o bin/ ./cmd/callyard ./cmd/frontdoor ./cmd/worker github.com/nats-io/nats-server/v2
GOWORK=off go -C bench build -o ../bin/ ./cmd/callyard-bench
sync # what was built is on the disk before anything is measured there
exec bin/callyard bench --bin bin --out bench-out "$@"
