#!/bin/bash
# Makes a slim image with Python, and without a compiler, available: pulls the official one, or builds a stand-in from
# Debian packages where no image registry can be reached. Building needs root and mmdebstrap, which it installs.
#
#   build-image.sh [TAG]        python:3.11-slim, python:3.13-slim (default) or python:3.14-slim:
#                               the Pythons of Debian 12, of 13, and of the release to come
#
#   PYTHON_IMAGE_PULL=1 (default)  first try `docker pull TAG`; 0: never
set -euo pipefail
tag=${1:-python:3.13-slim}
label=pykstreams.python-test-image

say() { printf '%4d s  %s\n' "$SECONDS" "$*" >&2; }

recipe=$(sha256sum <"$0" | cut -c1-16)-$(uname -m)
have=$(docker image inspect -f "{{ with .Config.Labels }}{{ index . \"$label\" }}{{ end }}" "$tag" 2>/dev/null || echo missing)
if [ -z "$have" ] || [ "$have" = "$recipe" ]; then
  say "image $tag is there already (${have:-official})"
  exit 0
fi
if [ "${PYTHON_IMAGE_PULL:-1}" = 1 ] && docker pull -q "$tag" >/dev/null 2>&1; then
  say "pulled $tag"
  exit 0
fi
case $tag in
  python:3.11-slim) suite=bookworm ;;
  python:3.13-slim) suite=trixie ;;
  python:3.14-slim) suite=forky ;;
  *) echo "$tag cannot be pulled, and no release of Debian has its Python" >&2; exit 1 ;;
esac
if ! command -v mmdebstrap >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  install=(apt-get install -y -qq --no-install-recommends mmdebstrap)
  "${install[@]}" >/dev/null || { apt-get update -qq; "${install[@]}" >/dev/null; }
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# As in the official image, `python` and `pip` come first on the path, and installing with pip is allowed: an
# environment of their own does it. Signatures are checked; a mirror of the release to come may be some weeks old.
mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates \
  --aptopt='Acquire::Check-Valid-Until "false"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='chroot "$1" python3 -m venv /opt/python' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/etc/resolv.conf' \
  "$suite" "$work/root.tar" 2>"$work/log" || { tail -20 "$work/log" >&2; exit 1; }
say "Debian $suite with Python"
changes=(-c 'ENV PATH=/opt/python/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8' -c 'CMD ["python"]'
  -c "LABEL $label=$recipe")
docker import "${changes[@]}" "$work/root.tar" "$tag" >/dev/null
say "$tag ready, $(docker image inspect -f '{{ .Size }}' "$tag" | awk '{printf "%.0f MB", $1 / 1e6}')"
