#!/bin/bash
# Makes a working Docker daemon available, on a Debian/Ubuntu machine without systemd too. Idempotent; run as root
# where something has to be installed or started. `docker-down.sh` undoes what this started (and nothing else).
set -euo pipefail
state=${DOCKER_STATE_DIR:-/run/pykstreams-dockerd}
alive() { [ -d "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }   # a zombie is not

if docker info >/dev/null 2>&1; then
  echo "docker: daemon is already running"
else
  [ "$(id -u)" = 0 ] || { echo "docker: no daemon, and only root can install and start one" >&2; exit 1; }
  missing=()
  if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
    # cgroupfs-mount: without systemd somebody has to mount the cgroup file systems (only a recommendation of docker.io)
    missing+=(docker.io cgroupfs-mount)
  fi
  command -v iptables >/dev/null || missing+=(iptables)   # also only recommended; no network of Docker's without it
  if [ "${#missing[@]}" -gt 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    install=(apt-get install -y -qq --no-install-recommends "${missing[@]}")
    "${install[@]}" >/dev/null || { apt-get update -qq; "${install[@]}" >/dev/null; }
  fi
  if ! docker info >/dev/null 2>&1; then   # the package may have started it
    mountpoint -q /sys/fs/cgroup || { command -v cgroupfs-mount >/dev/null && cgroupfs-mount; } || true
    mkdir -p "$state"
    # A pid file left by a daemon that was killed stops the new one from starting, if the number is in use again.
    for stale in /var/run/docker.pid /run/docker/containerd/containerd.pid; do
      if [ -f "$stale" ] && ! alive "$(cat "$stale")"; then rm -f "$stale"; fi
    done
    # By hand: `service docker start` raises limits, which fails without CAP_SYS_RESOURCE (as in many sandboxes).
    # setsid: the daemon must not get the Ctrl-C, nor the hang-up, of the shell that started it
    # shellcheck disable=SC2086  # flags, split on purpose
    setsid dockerd ${DOCKERD_FLAGS-} >"$state/dockerd.log" 2>&1 </dev/null &
    echo $! >"$state/dockerd.pid"
    for _ in $(seq 1 300); do
      docker info >/dev/null 2>&1 && break
      alive "$(cat "$state/dockerd.pid")" || break
      sleep 0.1
    done
    docker info >/dev/null 2>&1 || { echo "docker: the daemon did not start:" >&2; tail -20 "$state/dockerd.log" >&2; exit 1; }
    echo "docker: daemon started (log: $state/dockerd.log)"
  fi
fi

if ! docker compose version >/dev/null 2>&1 && ! command -v docker-compose >/dev/null; then
  [ "$(id -u)" = 0 ] || { echo "docker: no compose, and only root can install it" >&2; exit 1; }
  export DEBIAN_FRONTEND=noninteractive
  install=(apt-get install -y -qq --no-install-recommends docker-compose)
  "${install[@]}" >/dev/null || { apt-get update -qq; "${install[@]}" >/dev/null; }
fi
if docker compose version >/dev/null 2>&1; then docker compose version; else docker-compose version --short; fi
