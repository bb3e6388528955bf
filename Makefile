# make help lists the targets.
GO ?= go
BIN := bin

.DEFAULT_GOAL := all
.PHONY: all help build test race e2e bench boxes chaos images generate lint fmt clean

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

boxes: ## measure containers: warm hand-over, cold start, calls at ten at once (N=1000 of them)
	CALLYARD_TEST_BIN=$(CURDIR)/.cache/bin $(GO) test -run '^$$' -bench 'Cold|Warm' -benchtime 50x ./internal/launch/box
	CALLYARD_TEST_BIN=$(CURDIR)/.cache/bin $(GO) test -run '^$$' -bench TenAtOnce -benchtime $(or $(N),1000)x -timeout 30m ./internal/launch/box

chaos: ## break a fleet on purpose and check its promises; SHORT=1 or SIZE=medium, SEED=n, OUT=folder
	$(GO) run ./e2e/chaos/cmd/chaos --size $(if $(SHORT),short,$(or $(SIZE),full)) --seed $(or $(SEED),1) --out $(or $(OUT),chaos-out)

images: ## the images of deploy/compose.yaml, from this machine alone
	@for name in frontdoor approver worker callyard nats redis; do echo "callyard: image $$name"; deploy/images/build.sh $$name; done

generate: ## the OpenAPI document, and the clients that are made of it
	scripts/generate.sh

lint: ## golangci-lint, at the version in tools/lint/go.mod
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run $(or $(PKG),./...)

fmt: ## format the Go code
	@find . \( -name node_modules -o -name '.?*' \) -prune -o -name '*.go' -exec gofmt -l -w {} +

clean: ## what builds and set-ups left in the tree
	rm -rf $(BIN) .cache e2e/servers/node_modules tools/npm/node_modules tools/mcp-npm/node_modules e2e/clients-mcp/node_modules clients/typescript/node_modules clients/typescript/dist
