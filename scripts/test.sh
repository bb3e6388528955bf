#!/usr/bin/env bash
# Runs every test of Callyard on a machine that has Go, Node.js and Python.
#
#   scripts/test.sh                    everything
#   scripts/test.sh ./pkg/... -run X   any arguments of "go test", after the same set-up
#   scripts/test.sh --setup            only the set-up
#   scripts/test.sh --trainers         only install TRL and verifiers, for "make trainers"
#   scripts/test.sh --clients          only the part of the set-up that generates clients
#
# It fetches and builds the tests' dependencies into .cache and node_modules, vets
# the code, and prints a summary whose last line holds the counts. With CI=true, a
# skipped test fails the run, Go's test cache is not used, and vet does not run, because the
# linters include it. It can be run again at any time and skips steps that are up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export GOWORK=off # use each module alone, regardless of a developer's workspace
# Compile with the flags of the images, so that tests, images and linters share the build
# cache.
export GOFLAGS="-trimpath ${GOFLAGS-}" CGO_ENABLED=0

# Required programs: command, Debian package.
needs=(
  "gcc gcc"
  "wget wget" # health checks of the NATS image
  "redis-server redis-server"
  "chromium chromium"
  "bwrap bubblewrap"
  "javac default-jdk-headless" # runs openapi-generator, and compiles its Java client
  "mvn maven"                  # downloads openapi-generator
)
# Debian packages without a command.
libraries=(
  "libc6-dev" # headers for building the race detector
  "python3-venv"
)

say() { printf '%s\n' "$*" >&2; }
die() { say "test.sh: $*"; exit 2; }

# at_least HAVE WANT reports whether a dotted version is new enough.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

check_languages() {
  if ! command -v go >/dev/null && [ -x /usr/local/go/bin/go ]; then
    PATH=$PATH:/usr/local/go/bin
  fi
  command -v go >/dev/null || die "Go is missing. Install Go 1.26 or newer from https://go.dev/dl/ and put its bin directory on PATH."
  local go_version node_version
  go_version=$(go env GOVERSION) || die "go.mod asks for Go 1.26, and this Go cannot fetch it. Install it from https://go.dev/dl/."
  go_version=${go_version#go}
  at_least "${go_version%%[- ]*}" 1.26 || die "Go is $go_version, and the tests need 1.26 or newer: https://go.dev/dl/."
  command -v node >/dev/null || die "Node.js is missing. Install Node.js 20.19 or newer (Debian: apt-get install nodejs npm)."
  node_version=$(node --version)
  at_least "${node_version#v}" 20.19 || die "Node.js is $node_version, and the tests need 20.19 or newer: https://nodejs.org/."
  command -v npm >/dev/null || die "npm is missing. Install it (Debian: apt-get install npm)."
}

check_programs() {
  local need command package missing=()
  for need in "${needs[@]}"; do
    read -r command package <<<"$need"
    command -v "$command" >/dev/null || missing+=("$package")
  done
  if command -v dpkg-query >/dev/null; then
    for package in "${libraries[@]}"; do
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
  fi
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    install_packages "${missing[@]}"
    return 0
  fi
  if command -v apt-get >/dev/null; then
    die "missing: ${missing[*]}. Install with: sudo apt-get install ${missing[*]}"
  fi
  die "missing: ${missing[*]} (names of Debian packages). Install them the way this system does."
}

install_packages() {
  local log
  log=$(mktemp)
  # RUNLEVEL keeps Debian from starting servers when their packages are installed.
  if ! { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    die "apt-get could not install: $*"
  fi
  rm -f "$log"
}

# start_engine installs and starts a container engine, for tests of sandboxes in containers.
start_engine() {
  local tries
  if command -v docker >/dev/null && command -v dockerd >/dev/null && timeout 10 docker info >/dev/null 2>&1; then
    return 0
  fi
  if ! command -v docker >/dev/null || ! command -v dockerd >/dev/null; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
      die "a container engine is missing. Install it (Debian: sudo apt-get install docker.io) and let this user reach it."
    say "installing docker.io"
    install_packages docker.io iptables
  fi
  if ! timeout 10 docker info >/dev/null 2>&1; then
    [ "$(id -u)" = 0 ] || die "no container engine answers. Start it (sudo systemctl start docker) and let this user reach it (group docker, or DOCKER_HOST)."
    say "starting dockerd; it writes to .cache/dockerd.log"
    setsid dockerd >.cache/dockerd.log 2>&1 </dev/null &
    for ((tries = 0; tries < 60; tries++)); do
      timeout 10 docker info >/dev/null 2>&1 && return 0
      sleep 0.5
    done
    tail -n 20 .cache/dockerd.log >&2
    die "dockerd did not come up. It needs root, cgroups and, for the default network, iptables."
  fi
}

# npm_install FOLDER installs the packages of the lock file if it or the Node.js version
# changed.
npm_install() {
  local folder=$1 log
  local stamp=.cache/npm-${folder//\//-}.stamp want
  want="$(node --version) $(cksum <"$folder/package-lock.json")"
  if [ -d "$folder/node_modules" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    return 0
  fi
  say "installing the npm packages of $folder"
  log=$(mktemp)
  # No package needs its install scripts, so do not run them.
  if ! (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    die "npm could not install the packages of $folder"
  fi
  rm -f "$log"
  printf '%s\n' "$want" >"$stamp"
}

# python_install FOLDER VENV FLAG... installs the lock file of a folder into a separate
# virtual environment, with flags for pip.
python_install() {
  local folder=$1 venv=.cache/$2 log
  local flags=("${@:3}")
  local stamp=.cache/$2.stamp want
  want="$(python3 --version) $(cksum <"$folder/requirements.txt")"
  if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
    return 0
  fi
  say "installing the Python packages of $folder"
  log=$(mktemp)
  rm -rf "$venv"
  # Wheels only, so that no package runs code during installation. Byte code is left to the first
  # import: the tests import a small part of the modules.
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --disable-pip-version-check --only-binary :all: --no-compile \
    --require-hashes "${flags[@]}" --requirement "$folder/requirements.txt"; } >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    die "pip could not install $folder/requirements.txt"
  fi
  rm -f "$log"
  printf '%s\n' "$want" >"$stamp"
}

# clients installs the dependencies for generating the clients and running their tests.
clients() {
  local python_version
  python_version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || die "Python is missing. Install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)."
  at_least "$python_version" 3.11 || die "Python is $python_version, and the tests need 3.11 or newer."
  mkdir -p .cache
  npm_install clients/typescript
  # The dependencies of the Python client, its generator, and the OpenAPI validator.
  python_install clients/python python
}

# openapi_generator installs the generator that third parties use for clients.
openapi_generator() {
  local version=7.25.0 sum=41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae
  local jar=.cache/openapi-generator-cli.jar log
  if printf '%s  %s\n' "$sum" "$jar" | sha256sum --check --status 2>/dev/null; then
    return 0
  fi
  say "fetching openapi-generator"
  log=$(mktemp)
  if ! mvn -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="org.openapitools:openapi-generator-cli:$version" \
    -DoutputDirectory="$root/.cache" -Dmdep.stripVersion=true >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    die "mvn could not bring openapi-generator $version"
  fi
  rm -f "$log"
  printf '%s  %s\n' "$sum" "$jar" | sha256sum --check --status || die "$jar is not openapi-generator $version as it was pinned"
}

build() { # build NAME PACKAGE [MODULE], into .cache/bin; fast if nothing changed, because of Go's build cache
  go -C "${3:-.}" build -o "$root/.cache/bin/$1" "$2" || die "cannot build $2"
}

node_packages() {
  npm_install e2e/servers
  npm_install tools/npm
  npm_install tools/mcp-npm
  npm_install e2e/clients-mcp
}

python_packages() {
  python_install e2e/clients-mcp python-mcp
  python_install tools/schemathesis schemathesis
  python_install tools/bfcl bfcl --no-deps
  python_install e2e/clients-env env
}

python_packages_of_evaluations() {
  python_install tools/tau2 tau2
  python_install e2e/models python-models
  python_install e2e/engine engine --no-deps
  python_install tools/livemcp livemcp --no-deps
}

built_programs() {
  build everything-server github.com/modelcontextprotocol/go-sdk/conformance/everything-server
  build nats-server github.com/nats-io/nats-server/v2
  build scripted-server ./servers/scripted e2e
  build oauth-client ./oauthclient e2e
  build sandbox-prober ./servers/prober e2e
  build sandbox-forwarder ./deploy/images/egress-forwarder
}

# side_by_side runs functions concurrently, because they mostly wait for registries, and
# exits if one of them fails.
side_by_side() {
  local each running=() failed=0
  for each in "$@"; do
    "$each" &
    running+=($!)
  done
  for each in "${running[@]}"; do
    wait "$each" || failed=1
  done
  [ $failed = 0 ] || exit 2
}

setup() {
  check_languages
  check_programs
  mkdir -p .cache/bin
  start_engine
  side_by_side clients node_packages python_packages python_packages_of_evaluations openapi_generator built_programs
  export CALLYARD_TEST_BIN=$root/.cache/bin
  export CALLYARD_TEST_SERVERS=$root/e2e/servers/node_modules
  export CALLYARD_TEST_BFCL=$root/.cache/bfcl/bin/python
  export CALLYARD_TEST_ENV=$root/.cache/env/bin/python
  export CALLYARD_TEST_TAU2=$root/.cache/tau2/bin/python
  export CALLYARD_TEST_MODELS=$root/.cache/python-models/bin/python
  export CALLYARD_TEST_ENGINE=$root/.cache/engine/bin/python
  export CALLYARD_TEST_LIVEMCP=$root/.cache/livemcp/bin/python
  # Disable the reaper of testcontainers: it would pull an image, and the tests clean up
  # themselves. Set the address, because its detection fails inside a container.
  export TESTCONTAINERS_RYUK_DISABLED=true
  export TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
}

check_code() {
  local unformatted module status=0
  unformatted=$(find . \( -name node_modules -o -name '.?*' \) -prune -o -name '*.go' -exec gofmt -l {} +)
  if [ -n "$unformatted" ]; then
    say "not formatted, run make fmt:"
    say "$unformatted"
    status=1
  fi
  [ "${CI-}" = true ] || for module in "${modules[@]}"; do go -C "$module" vet ./... || status=1; done
  return $status
}

# modules are the modules with tests. Those with large dependencies are separate: bench draws
# plots, e2e starts containers and browsers, e2e/models has the libraries of the model APIs,
# and deploy/checks uses Prometheus, Helm and the types of Kubernetes. A nested module follows
# its parent.
modules=(. e2e e2e/models bench deploy/checks)

# packages_of MODULE ARGUMENT... prints the packages of a module that the arguments name,
# relative to its folder.
packages_of() {
  local module=$1 argument path deep owner other
  shift
  for argument in "$@"; do
    path=${argument#./} deep=
    case $path in ... | */...) path=${path%...} path=${path%/} deep=/... ;; esac
    owner=.
    for other in "${modules[@]}"; do
      case $path/ in "$other"/*) owner=$other ;; esac
    done
    if [ "$owner" = "$module" ]; then
      [ "$owner" = . ] || path=${path#"$owner"} path=${path#/}
      printf '%s\n' ".${path:+/}$path$deep"
    elif [ -n "$deep" ] && [ "$module" != . ]; then
      case $module in "$path"${path:+/}*) printf './...\n' ;; esac
    fi
  done
}

# test_module MODULE FLAG... tests the packages on stdin, one per line. The tests of the main
# module and of bench run with the race detector. The tests of the other modules run without
# it, because they start programs instead of running our code in the test process; they build
# some of those programs with the detector. $race=false switches the detector off.
#
# Without debug information, the builds with the detector take less time. The tests of e2e build such
# programs with the same flags, so that they share the build cache.
#
# GOGC=400 saves a tenth of the time of the compiler and the linker. The tests themselves run
# without it and without cgo, so that they build and run programs in the usual way.
test_module() {
  local module=$1 flags=() cgo=0 packages=()
  shift
  mapfile -t packages
  [ ${#packages[@]} -gt 0 ] || return 0
  case $module in
  . | bench) ! $race || cgo=1 flags=(-race -gcflags=all=-dwarf=false) ;;
  esac
  GOGC=400 CGO_ENABLED=$cgo go -C "$module" test -exec "env -u GOGC CGO_ENABLED=0" -json -timeout 40m -p "$at_once" "${flags[@]}" "$@" "${packages[@]}" >>"$events"
}

# lane runs the tests of modules one after the other, except the packages that the sed script
# $elsewhere deletes.
lane() {
  local module failed=0
  for module in "$@"; do
    packages_of "$module" "${asked[@]}" | go_list "$module" | sed "$elsewhere" | test_module "$module" "${how[@]}" || failed=1
  done
  return $failed
}

# go_list MODULE expands the package patterns on stdin.
go_list() {
  local patterns=()
  mapfile -t patterns
  [ ${#patterns[@]} -eq 0 ] || go -C "$1" list "${patterns[@]}"
}

# outside runs the tests of the modules around e2e. The package e2e takes longer than all others
# combined, so it is split: the tests that $some_of_e2e matches run before the other packages,
# and the rest in a second process, so that both end at about the same time.
some_of_e2e='^Test[P-R]'
outside() {
  local at_once=1 elsewhere='\#/e2e$#d' most failed=0
  echo . | test_module e2e "${how[@]}" -skip "$some_of_e2e" &
  most=$!
  echo . | test_module e2e "${how[@]}" -run "$some_of_e2e" || failed=1
  lane e2e deploy/checks e2e/models || failed=1
  wait $most || failed=1
  return $failed
}

# long_tests runs the long tests of the main module in full: those that -short shortens. Most of their
# time is spent in the race detector, so they run without it here, and shortened with it later.
long_tests() {
  local long packages names
  long=$(find cmd internal pkg -name '*_test.go' -exec awk '
    /^func Test/ { split($2, name, "(") }
    /testing\.Short\(\)/ { folder = FILENAME; sub("/[^/]*$", "", folder); print "./" folder, name[1] }' {} +)
  packages=$(cut -d ' ' -f 1 <<<"$long" | sort -u)
  names=$(cut -d ' ' -f 2 <<<"$long" | sort -u | paste -sd '|')
  race=false test_module . "${how[@]}" -run "^($names)\$" <<<"$packages"
}

# tests runs the requested tests and writes their events to the file $events. The tests of e2e
# mostly wait for processes and those of the main module rarely do, so both run concurrently.
tests() {
  local asked=() how=("${fresh[@]}") at_once=2 race=true elsewhere='' background argument failed=0
  for argument in "$@"; do
    case $argument in
    ./*) asked+=("$argument") ;;
    *) how+=("$argument") ;;
    esac
  done
  [ ${#asked[@]} -gt 0 ] || asked=(./...)
  if $everything; then
    outside &
    background=$!
    # housetest only reads the source tree, so it does not need the race detector.
    elsewhere='\#/internal/housetest$#d'
    echo ./internal/housetest | race=false test_module . "${how[@]}" || failed=1
    long_tests || failed=1
    how+=(-short)
  else
    lane e2e deploy/checks e2e/models &
    background=$!
  fi
  # Only these two modules run with the race detector, so bench uses what . has compiled.
  lane . bench || failed=1
  wait $background || failed=1
  return $failed
}

# follow FILE PROCESS prints a growing file until the process has ended.
follow() {
  local ended=false
  until $ended; do
    kill -0 "$2" 2>/dev/null || ended=true
    cat
    $ended || sleep 0.2
  done <"$1"
}

if [ "${1-}" = --clients ]; then
  check_languages
  clients
  exit 0
fi
if [ "${1-}" = --trainers ]; then
  check_languages
  mkdir -p .cache/bin
  # The trainer itself, which needs torch and accelerate, does not run.
  python_install e2e/clients-train/trl trl --no-deps
  python_install e2e/clients-train/verifiers verifiers --no-deps
  exit 0
fi
trap 'trap - TERM; kill 0' INT TERM # also end the background processes
setup
if [ "${1-}" = --setup ]; then
  exit 0
fi

status=0
everything=false
fresh=()
if [ "${CI-}" = true ]; then
  fresh=(-count=1)
fi
if [ $# -eq 0 ]; then
  everything=true
  set -- ./...
  check_code || status=1
  fresh+=(-vet=off) # check_code or the linters run vet
fi
events=$(mktemp)
trap 'rm -f "$events"' EXIT
tests "$@" </dev/null &
running=$!
# testsum.sh evaluates the tests. The exit status of go test must be 0, too.
follow "$events" $running | scripts/testsum.sh || status=1
wait $running || status=1
exit $status
