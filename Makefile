# make help lists the targets.
GO ?= go
BIN := bin

.DEFAULT_GOAL := all
.PHONY: all help build test race e2e bench chaos generate lint fmt clean

all: lint test ## lint, then every test

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the commands, into bin/
	@mkdir -p $(BIN)
	$(GO) build -trimpath -o $(BIN)/ ./cmd/...

test: ## every test, with the set-up they need
	scripts/test.sh

race: ## go test -race without any set-up; name packages with PKG=./pkg/...
	$(GO) test -race -p 2 $(or $(PKG),./...)

e2e: ## the tests that see Callyard from outside
	scripts/test.sh ./e2e/...

bench: ## measure Callyard beside direct clients; ARGS="--quick" and other flags
	scripts/bench.sh $(ARGS)

chaos: ## break a fleet on purpose and check its promises; SHORT=1 or SIZE=medium, SEED=n, OUT=folder
	$(GO) run ./e2e/chaos/cmd/chaos --size $(if $(SHORT),short,$(or $(SIZE),full)) --seed $(or $(SEED),1) --out $(or $(OUT),chaos-out)

generate: ## generated code and documents
	$(GO) generate ./...

lint: ## golangci-lint, at the version in tools/lint/go.mod
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run $(or $(PKG),./...)

fmt: ## format the Go code
	@find . \( -name node_modules -o -name '.?*' \) -prune -o -name '*.go' -exec gofmt -l -w {} +

clean: ## what builds and set-ups left in the tree
	rm -rf $(BIN) .cache e2e/servers/node_modules tools/npm/node_modules
