# "make" without arguments lists the targets.
GO ?= go
BIN := bin
# Checks and builds do not depend on a developer's workspace.
export GOWORK := off
# The programs and packages that scripts/test.sh --setup installed.
TESTED := CALLYARD_TEST_BIN=$(CURDIR)/.cache/bin CALLYARD_TEST_SERVERS=$(CURDIR)/e2e/servers/node_modules

.DEFAULT_GOAL := help
.PHONY: all help workspace build unit test race e2e bench sandboxes rolling scale console-scale mixed chaos fuzz schemathesis hostile attached environments trainers train-toy images pictures generate notices govulncheck release-check diagrams lint linters prose fmt clean

all: lint test ## lint, then every test

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

workspace: ## write a go.work for editors, with the main modules
	rm -f go.work && GOWORK= $(GO) work init . ./clients/go ./bench ./e2e

build: ## build the commands into bin/
	@mkdir -p $(BIN)
	$(GO) build -ldflags='-s -w' -o $(BIN)/ ./cmd/...
	$(GO) -C bench build -ldflags='-s -w' -o ../$(BIN)/ ./cmd/...

# Packages whose tests start containers or sandboxes, and the tests that need npm or Python packages.
CONTAINED := /internal/launch/(sandbox|bwrap)$$
NEEDS_NPM := ^TestTheDocument(OfEveryRecordedServer)?PassesThe(Linter|Validator)$$

# Use the compiler flags of scripts/test.sh, to share its build cache. Most packages wait for a
# disk, a process or a clock, so run more of them concurrently than there are processors.
unit: export GOFLAGS := -trimpath $(GOFLAGS)
unit: export CGO_ENABLED := 0
# Linking the test programs is a third of the work. Less garbage collection saves a tenth of the total.
unit: export GOGC ?= 400
unit: ## tests without container engine, browser or npm packages, with long ones shortened and without the race detector
	@mkdir -p .cache/bin
	$(GO) build -o .cache/bin/nats-server github.com/nats-io/nats-server/v2
	CALLYARD_TEST_BIN=$(CURDIR)/.cache/bin $(GO) test -short -p 6 -parallel 8 -vet=off -skip '$(NEEDS_NPM)' $$($(GO) list ./... | grep -vE '$(CONTAINED)')

test: ## every test, including the set-up
	scripts/test.sh

race: ## go test -race without any set-up; name packages with PKG=./pkg/...
	$(GO) test -race -p 2 $(or $(PKG),./...)

e2e: ## the end-to-end tests
	scripts/test.sh ./e2e/...

bench: ## measure Callyard and direct clients; ARGS="--quick" and other flags
	scripts/bench.sh $(ARGS)

sandboxes: ## measure containers: warm hand-over, cold start, N calls (1000) at ten at once
	scripts/test.sh --setup
	$(TESTED) $(GO) test -run '^$$' -bench 'Cold|Warm' -benchtime 50x ./internal/launch/sandbox
	$(TESTED) $(GO) test -run '^$$' -bench TenAtOnce -benchtime $(or $(N),1000)x -timeout 30m ./internal/launch/sandbox

dead: ## functions that no command or test reaches in the static call graph; it does not include e2e
	$(GO) tool -modfile=tools/lint/go.mod deadcode -test ./...

rolling: ## restarts, upgrades, faults of cluster nodes and two regions, under load
	scripts/test.sh ./e2e/rolling

scale: ## calls per second of one, two and four workers, and the speedup
	scripts/test.sh --setup
	$(TESTED) $(GO) -C e2e test -run '^$$' -bench Workers -benchtime 1x ./rolling

console-scale: ## p50 and p95 of each page of the console with 500 servers, 5,000 tools, 100,000 calls and 10,000 approvals, and the cost of 50 viewers
	scripts/test.sh --setup
	$(TESTED) CALLYARD_CONSOLE_SCALE=full $(GO) -C e2e test -run TestPagesOfTheConsoleWithMuchData -count 1 -v -timeout 30m .

mixed: ## an upgrade from the commit OLD and back, under load, with both versions at the same time
	rm -rf .cache/old && mkdir -p .cache/old/source && git archive $(or $(OLD),HEAD~1) | tar -x -C .cache/old/source
	cd .cache/old/source && $(GO) build -buildvcs=false -o ../bin/ ./cmd/frontdoor ./cmd/worker ./cmd/approver
	scripts/test.sh --setup
	$(TESTED) CALLYARD_TEST_OLD=$(CURDIR)/.cache/old/bin $(GO) -C e2e test -tags mixed -count=1 -run TestThePreviousReleaseWorksWithThisOne -v ./rolling

chaos: ## break a fleet on purpose and check its promises; SHORT=1 or SIZE=medium, MATRIX=1, SEED=n, ONLY=names, OUT=folder
	$(if $(MATRIX),scripts/test.sh --setup)
	CALLYARD_TEST_BIN=$(CURDIR)/.cache/bin CALLYARD_TEST_SERVERS=$(CURDIR)/e2e/servers/node_modules \
	$(GO) -C e2e run ./chaos/cmd/chaos $(if $(MATRIX),--matrix) --size $(if $(SHORT),short,$(or $(SIZE),full)) --seed $(or $(SEED),1) --out $(abspath $(or $(OUT),chaos-out)) --only "$(ONLY)"

fuzz: ## every fuzz test in turn, each for TIME (30s); one folder with PKG=./pkg/bus
	TIME=$(or $(TIME),30s) PKG=$(PKG) scripts/fuzz.sh

schemathesis: ## requests made from the OpenAPI documents; N examples for each operation (300)
	scripts/test.sh --setup
	CALLYARD_SCHEMATHESIS=$(or $(N),300) $(TESTED) $(GO) -C e2e test . -run '^TestEveryResponseConformsToTheOpenAPIDocument$$' -count=1 -v -timeout 3h

hostile: ## malformed requests, N for each operation (10000), and slow clients; SEED=n draws others
	scripts/test.sh --setup
	CALLYARD_HOSTILE=$(or $(N),10000) CALLYARD_HOSTILE_SEED=$(or $(SEED),1) $(TESTED) $(GO) -C e2e test . -run '^(TestMalformedRequestsCauseNoServerErrorAndNoLeak|TestStalledClientsDoNotAffectOthers)$$' -count=1 -v -timeout 3h

attached: ## N attached programs (50) that exit or crash under load FOR a time (10m)
	scripts/test.sh --setup
	CALLYARD_ATTACH_PROGRAMS=$(or $(N),50) CALLYARD_ATTACH_FOR=$(or $(FOR),10m) $(TESTED) $(GO) -C e2e test . -run '^TestAttachedProgramsEndUnderLoad$$' -count=1 -v -timeout 1h

environments: ## thousands of concurrent episodes, in sessions and in processes, with killed workers and required figures
	scripts/test.sh --setup
	CALLYARD_ENV_MEASURE=1 CALLYARD_TEST_ENV=$(CURDIR)/.cache/env/bin/python CALLYARD_TEST_TAU2=$(CURDIR)/.cache/tau2/bin/python $(TESTED) $(GO) -C e2e test . -run '^(TestThousandsOfEpisodesRunAtOnce|TestEpisodesInProcessesLeakNothing|TestRewardsDependOnlyOnTaskSeedAndAction|TestAWorkerThatIsKilledMasksItsEpisodesAndNoOthers|TestAirlineEpisodesHaveSeparateDatabases)$$' -count=1 -v -timeout 1h

trainers: ## TRL and the task set openenv of verifiers against environments; installs both, 1.2 GB, without torch
	scripts/test.sh --trainers
	CALLYARD_TEST_TRL=$(CURDIR)/.cache/trl/bin/python CALLYARD_TEST_VERIFIERS=$(CURDIR)/.cache/verifiers/bin/vf-eval $(TESTED) $(GO) -C e2e test -tags trainers . -run '^(TestTRLBuildsDataSetAndTools|TestVerifiersTaskSetRuns)$$' -count=1 -v

train-toy: ## train small policies on tools through an environment, without a GPU; SEEDS=n for each method and reward (5), OUT=folder
	@mkdir -p $(BIN)
	$(GO) build -ldflags='-s -w' -o $(BIN)/ ./cmd/callyard
	$(GO) -C e2e run ./toy/cmd/train-toy --callyard $(CURDIR)/$(BIN)/callyard --seeds $(or $(SEEDS),5) --out $(abspath $(or $(OUT),toy-out))

images: ## build the images of deploy/compose.yaml without pulling any image
	@for name in frontdoor approver worker callyard nats nats-cli redis; do echo "callyard: image $$name"; deploy/images/build.sh $$name; done

generate: ## write the OpenAPI document and its clients
	scripts/generate.sh

pictures: ## take the console screenshots of docs/images from a running fabric; review each of them
	scripts/test.sh --setup
	$(TESTED) $(GO) -C e2e test . -run '^(TestTheConsoleInABrowser|TestAnOperatorInABrowser|TestEnvironmentsAndEvaluationsInABrowser)$$' -count=1 -update

diagrams: ## render docs/diagrams/*.dot to docs/images/*.svg
	@[ -d tools/npm/node_modules/@viz-js ] || npm ci --prefix tools/npm --ignore-scripts --no-audit --no-fund
	node tools/npm/diagrams.mjs

notices: ## write THIRD_PARTY_NOTICES.txt from the licences of the linked modules
	scripts/notices.sh

govulncheck: ## search for known vulnerabilities in called code; needs the database at vuln.go.dev
	scripts/govulncheck.sh

release-check: ## check .goreleaser.yaml, build and run this platform's programs, check their SBOM
	scripts/release-check.sh

lint: prose linters ## golangci-lint, at the version in tools/lint/go.mod, and prose

# Use the compiler flags of scripts/test.sh, so that the linters share its build cache. GOGC=200 saves
# a quarter of their processor time and takes 4 GiB of memory.
linters: export GOFLAGS := -trimpath $(GOFLAGS)
linters: export CGO_ENABLED := 0
linters: export GOGC ?= 200
linters: ## golangci-lint only
	$(GO) tool -modfile=tools/lint/go.mod golangci-lint run --allow-parallel-runners $(or $(PKG),./...)
	@$(if $(PKG),,cd bench && $(GO) tool -modfile=../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)
	@$(if $(PKG),,cd e2e && $(GO) tool -modfile=../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)
	@$(if $(PKG),,cd e2e/models && $(GO) tool -modfile=../../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)
	@$(if $(PKG),,cd deploy/checks && $(GO) tool -modfile=../../tools/lint/go.mod golangci-lint run --allow-parallel-runners ./...)

prose: ## retired phrases in pages, comments, error and log messages, and help
	$(GO) test ./internal/housetest -run 'RetiredPhrase'

fmt: ## format the Go code
	@find . \( -name node_modules -o -name '.?*' \) -prune -o -name '*.go' -exec gofmt -l -w {} +

clean: ## remove the output of builds and set-ups
	rm -rf $(BIN) .cache e2e/servers/node_modules tools/npm/node_modules tools/mcp-npm/node_modules e2e/clients-mcp/node_modules clients/typescript/node_modules clients/typescript/dist
