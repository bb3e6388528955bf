#!/usr/bin/env bash
# Builds the example images from what is on this machine; nothing is pulled.
#
#   deploy/images/build.sh demo    callyard/demo:local: the demo server, one static Go binary
#   deploy/images/build.sh node    callyard/everything:local: a real MCP server for Node.js, with
#                                  the node of this machine and the packages of e2e/servers
#
# Prints the id of the image, by which a servers file can name it for good.
# DOCKER_HOST says which engine gets it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

die() { printf 'build.sh: %s\n' "$*" >&2; exit 2; }
[ $# = 1 ] || die "say which image: demo or node"
command -v docker >/dev/null || die "the docker command is missing. Install it (Debian: apt-get install docker.io)."

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

case $1 in
demo)
  name=callyard/demo:local
  CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$context/server" ./deploy/images/demo
  ;;
node)
  name=callyard/everything:local
  node=$(readlink -f "$(command -v node)") || die "Node.js is missing"
  packages=e2e/servers/node_modules
  [ -d "$packages" ] || die "the packages are missing; scripts/test.sh --setup installs them"
  mkdir -p "$context/root/bin" "$context/root/server" "$context/root/tmp"
  chmod 1777 "$context/root/tmp"
  cp "$node" "$context/root/bin/node"
  ldd "$node" | grep -o '/[^ ]*' | while read -r lib; do
    mkdir -p "$context/root$(dirname "$lib")"
    cp -L "$lib" "$context/root$lib"
  done
  cp -r "$packages" "$context/root/server/"
  ;;
*) die "there is no image \"$1\"; say demo or node" ;;
esac
cp "deploy/images/$1/Dockerfile" "$context/"
# Files are the same for every user: each container runs as another one.
chmod -R a+rX "$context"
docker build --quiet --tag "$name" "$context" </dev/null
