#!/usr/bin/env bash
# Builds images from what is on this machine; nothing is pulled.
#
#   deploy/images/build.sh frontdoor, approver, worker, callyard
#                                  callyard/NAME:local: one static Go program each, for an
#                                  unprivileged user. The worker has the demo server too
#   deploy/images/build.sh nats, redis, nats-cli
#                                  the servers that deploy/compose.yaml asks for, under the names
#                                  that it uses: nats-server as it stands in go.mod, Redis and wget as they
#                                  are installed here, the nats command at the version of
#                                  nats-cli.Dockerfile. For machines that reach no registry of images
#   deploy/images/build.sh demo    callyard/demo:local: the demo server, one static Go binary
#   deploy/images/build.sh node    callyard/everything:local: a real MCP server for Node.js, with
#                                  the node of this machine and the packages of e2e/servers
#   deploy/images/build.sh egress-forwarder  callyard/egress-forwarder:local: what sandboxes with "egress" reach the worker's
#                                  proxy through, one static Go binary
#
# Prints the id of the image, by which a servers file can name it for good.
# DOCKER_HOST says which engine gets it, IMAGE another name for it.
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

# base makes what every program of ours finds in its image: a user, certificates, /tmp.
base() {
  mkdir -p "$context/root/etc/ssl/certs" "$context/root/tmp"
  printf 'root:x:0:0::/:\ncallyard:x:65532:65532::/tmp:\n' >"$context/root/etc/passwd"
  local certificates=/etc/ssl/certs/ca-certificates.crt
  [ ! -f "$certificates" ] || cp "$certificates" "$context/root$certificates"
}

# libraries PROGRAM copies what a program is linked to.
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
  [ "$1" != worker ] || program ./deploy/images/demo "$context/root/demo"
  ;;
nats)
  name=nats:2.15.2-alpine
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
  # What is in it, also where it is a link to a folder elsewhere; the links inside stay.
  cp -r "$packages/." "$context/root/server/node_modules/"
  ;;
*) die "there is no image \"$1\"; say $names" ;;
esac
cp "$dockerfile" "$context/Dockerfile"
# Files are the same for every user: each container runs as another one.
chmod -R a+rX "$context"
docker build --quiet --tag "${IMAGE:-$name}" "$context" </dev/null
