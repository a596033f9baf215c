#!/bin/bash
# Stops the daemon that docker-up.sh started (with its containers). Does nothing when somebody else's daemon was used.
set -euo pipefail
state=${DOCKER_STATE_DIR:-/run/pykstreams-dockerd}
alive() { [ -d "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }
[ -f "$state/dockerd.pid" ] || { echo "docker: not started here"; exit 0; }
pid=$(cat "$state/dockerd.pid")
# Kill containers first: dockerd would give each of them 10 s to stop.
docker ps -q 2>/dev/null | xargs -r docker kill >/dev/null 2>&1 || true
if alive "$pid" && [ "$(cat "/proc/$pid/comm")" = dockerd ]; then
  kill -TERM "$pid"
  for _ in $(seq 1 200); do alive "$pid" || break; sleep 0.1; done
  if alive "$pid"; then echo "docker: daemon $pid did not stop, killing it" >&2; kill -KILL "$pid"; fi
fi
rm -f "$state/dockerd.pid"
echo "docker: daemon stopped"
