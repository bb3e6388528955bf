#!/usr/bin/env bash
# Creates the secrets of deploy/compose.yaml: the NATS passwords, API keys and their
# hashes in deploy/.env, and the keys that sign approvals in deploy/secrets. Existing secrets
# are kept. Prints the API keys.
#
#   deploy/secrets.sh            with the callyard of this repository
#   CALLYARD=/usr/bin/callyard deploy/secrets.sh
set -euo pipefail
if [ -n "${CALLYARD:-}" ]; then # a relative path is valid in the caller's folder only
  program=$(command -v "$CALLYARD") || { echo "secrets.sh: CALLYARD=$CALLYARD is not a program" >&2; exit 2; }
  CALLYARD=$(realpath "$program")
fi
cd "$(dirname "${BASH_SOURCE[0]}")"

random() { printf 'k%s' "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')"; }
hash() { printf 'sha256:%s' "$(printf %s "$1" | sha256sum | cut -d' ' -f1)"; }

umask 077
if [ ! -f .env ]; then
  agent=$(random) ann=$(random)
  {
    for user in FRONTDOOR APPROVER WORKER OPERATOR SYSTEM CLUSTER; do
      printf 'NATS_%s_PASSWORD=%s\n' "$user" "$(random)"
    done
    printf 'AGENT_KEY=%s\nAGENT_KEY_HASH=%s\n' "$agent" "$(hash "$agent")"
    printf 'ANN_KEY=%s\nANN_KEY_HASH=%s\n' "$ann" "$(hash "$ann")"
  } >.env
fi
mkdir -p secrets
for name in frontdoor approver; do
  [ ! -f "secrets/$name.pem" ] || continue
  if [ -n "${CALLYARD:-}" ]; then
    "$CALLYARD" keys warrant "secrets/$name" >/dev/null
  else
    (cd .. && go run ./cmd/callyard keys warrant "deploy/secrets/$name" >/dev/null)
  fi
done
for n in 1 2 3; do # for compose.cluster.yaml
  [ ! -d "secrets/sentinel-$n" ] || continue
  mkdir -m 777 "secrets/sentinel-$n"
  chmod 777 "secrets/sentinel-$n" # regardless of the umask
  cat >"secrets/sentinel-$n/sentinel.conf" <<'END'
port 26379
protected-mode no
dir /sentinel
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel monitor callyard redis-1 6379 2
sentinel down-after-milliseconds callyard 5000
sentinel failover-timeout callyard 30000
END
  chmod 666 "secrets/sentinel-$n/sentinel.conf"
done
# The folder keeps other users of this machine out. The files are readable, because the
# program in the container runs as another user.
chmod 700 secrets
chmod 444 secrets/*.pem
grep -E '^(AGENT|ANN)_KEY=' .env
