#!/usr/bin/env bash
# Builds images from files of this machine, without pulling any image.
#
#   deploy/images/build.sh frontdoor, approver, worker, callyard
#                                  callyard/NAME:local: one static Go program each, for an
#                                  unprivileged user. The worker's image includes the demo server
#   deploy/images/build.sh nats, redis, nats-cli
#                                  the servers of deploy/compose.yaml, under the names that it
#                                  uses: nats-server at the version of go.mod, Redis and wget as
#                                  installed on this machine, the nats command at the version of
#                                  nats-cli.Dockerfile. For machines without access to a registry
#   deploy/images/build.sh demo    callyard/demo:local: the demo server, one static Go binary
#   deploy/images/build.sh node    callyard/everything:local: a real MCP server for Node.js, with
#                                  the node of this machine and the packages of e2e/servers
#   deploy/images/build.sh egress-forwarder  callyard/egress-forwarder:local: the forwarder that connects sandboxes
#                                  with "egress" to the worker's proxy, one static Go binary
#
# Prints the ID of the image, with which a servers file can pin it.
# DOCKER_HOST selects the engine that gets it, IMAGE overrides its name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

die() { printf 'build.sh: %s\n' "$*" >&2; exit 2; }
names="frontdoor, approver, worker, callyard, nats, nats-cli, redis, demo, node or egress-forwarder"
[ $# = 1 ] || die "say which image: $names"
command -v docker >/dev/null || die "the docker command is missing. Install it (Debian: apt-get install docker.io)."

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
dockerfile=deploy/images/$1/Dockerfile

# program PACKAGE FILE builds a static program.
program() { CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$2" "$1"; }

# base creates the common content of our images: a user, certificates, /tmp.
base() {
  mkdir -p "$context/root/etc/ssl/certs" "$context/root/tmp"
  chmod 1777 "$context/root/tmp" # also the mode of a tmpfs that is mounted there
  printf 'root:x:0:0::/:\ncallyard:x:65532:65532::/tmp:\n' >"$context/root/etc/passwd"
  local certificates=/etc/ssl/certs/ca-certificates.crt
  [ ! -f "$certificates" ] || cp "$certificates" "$context/root$certificates"
}

# libraries PROGRAM copies the shared libraries of a program.
libraries() {
  ldd "$1" | grep -o '/[^ ]*' | while read -r lib; do
    mkdir -p "$context/root$(dirname "$lib")"
    cp -L "$lib" "$context/root$lib"
  done
}

case $1 in
frontdoor | approver | worker | callyard)
  name=callyard/$1:local
  base
  program "./cmd/$1" "$context/root/$1"
  [ "$1" != callyard ] || mkdir -p "$context/owned/data"
  [ "$1" != worker ] || program ./deploy/images/demo "$context/root/demo"
  ;;
nats)
  name=nats:2.15.3-alpine
  wget=$(command -v wget) || die "wget is missing (Debian: apt-get install wget)"
  base
  mkdir -p "$context/owned/data" "$context/root/bin"
  cp -L "$wget" "$context/root/bin/wget" # for health checks
  libraries "$wget"
  program github.com/nats-io/nats-server/v2 "$context/root/nats-server"
  ;;
nats-cli)
  name=callyard/nats-cli:local
  base
  version=$(grep -o 'natscli/nats@v[0-9.]*' deploy/images/nats-cli.Dockerfile)
  GOBIN=$context/root CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' "github.com/nats-io/$version"
  ;;
redis)
  name=redis:7
  redis=$(readlink -f "$(command -v redis-server)") || die "Redis is missing (Debian: apt-get install redis-server)"
  base
  mkdir -p "$context/root/usr/bin" "$context/owned/data"
  cp "$redis" "$context/root/usr/bin/redis-server"
  libraries "$redis"
  cli=$(command -v redis-cli) || die "redis-cli is missing (Debian: apt-get install redis-tools)"
  cp -L "$cli" "$context/root/usr/bin/redis-cli" # for health checks
  libraries "$cli"
  ;;
demo)
  name=callyard/demo:local
  program ./deploy/images/demo "$context/server"
  ;;
egress-forwarder)
  name=callyard/egress-forwarder:local
  program ./deploy/images/egress-forwarder "$context/forwarder"
  ;;
node)
  name=callyard/everything:local
  node=$(readlink -f "$(command -v node)") || die "Node.js is missing"
  packages=e2e/servers/node_modules
  [ -d "$packages" ] || die "the packages are missing; scripts/test.sh --setup installs them"
  mkdir -p "$context/root/bin" "$context/root/server/node_modules" "$context/root/tmp"
  chmod 1777 "$context/root/tmp"
  cp "$node" "$context/root/bin/node"
  libraries "$node"
  # "/." copies the content even if the folder is a symlink. Symlinks inside are kept.
  cp -r "$packages/." "$context/root/server/node_modules/"
  ;;
*) die "there is no image \"$1\"; say $names" ;;
esac
cp "$dockerfile" "$context/Dockerfile"
# Containers run as different users, so every user can read the files.
chmod -R a+rX "$context"
docker build --quiet --tag "${IMAGE:-$name}" "$context" </dev/null
