# make alone lists the targets.
GO ?= go
BIN := bin
# What is checked and built does not depend on the workspace of a developer.
export GOWORK := off
# What scripts/test.sh --setup brought.
TESTED := CALLYARD_TEST_BIN=$(CURDIR)/.cache/bin CALLYARD_TEST_SERVERS=$(CURDIR)/e2e/servers/node_modules

.DEFAULT_GOAL := help
.PHONY: all help workspace build unit test race e2e bench sandboxes rolling scale console-scale mixed chaos fuzz schemathesis hostile attached environments trainers train-toy images pictures generate notices govulncheck release-check diagrams lint linters prose fmt clean

all: lint test ## lint, then every test

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

workspace: ## a go.work for editors, over the modules that are worked on together
	rm -f go.work && GOWORK= $(GO) work init . ./clients/go ./bench ./e2e

build: ## the commands, into bin/
	@mkdir -p $(BIN)
	$(GO) build -ldflags='-s -w' -o $(BIN)/ ./cmd/...
	$(GO) -C bench build -ldflags='-s -w' -o ../$(BIN)/ ./cmd/...

# Packages whose tests start containers or sandboxes, and the tests that need npm or Python packages.
CONTAINED := /internal/launch/(sandbox|bwrap)$$
NEEDS_NPM := ^TestTheDocument(OfEveryRecordedServer)?PassesThe(Linter|Validator)$$

lint: prose linters ## prose and linters

# Compiled as scripts/test.sh compiles, so that the linters find in the build cache what they read.
linters: export GOFLAGS := -trimpath $(GOFLAGS)
linters: export CGO_ENABLED := 0
linters: ## golangci-lint, at the version in tools/lint/go.mod
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run --allow-parallel-runners $(or $(PKG),./...)
	@$(if $(PKG),,cd bench && $(GO) tool -modfile=../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)
	@$(if $(PKG),,cd e2e && $(GO) tool -modfile=../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)
	@$(if $(PKG),,cd e2e/models && $(GO) tool -modfile=../../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)
	@$(if $(PKG),,cd deploy/checks && $(GO) tool -modfile=../../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)

prose: ## retired phrases in pages, comments, error and log messages, and help
	$(GO) test ./internal/housetest -run 'RetiredPhrase'

fmt: ## format the Go code
	@find . \( -name node_modules -o -name '.?*' \) -prune -o -name '*.go' -exec gofmt -l -w {} +

clean: ## what builds and set-ups left in the tree
	rm -rf $(BIN) .cache e2e/servers/node_modules tools/npm/node_modules tools/mcp-npm/node_modules e2e/clients-mcp/node_modules clients/typescript/node_modules clients/typescript/dist
