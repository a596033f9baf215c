#!/bin/bash
# Makes the image of the test broker available: pulls the official one, or builds a stand-in from Debian packages
# and the broker's Maven artifacts where no image registry can be reached. Building needs apt-get, dpkg, mvn and tar.
#
#   build-image.sh [TAG]        default TAG: apache/kafka:4.3.1
#
#   KAFKA_IMAGE_PULL=1 (default)  first try `docker pull TAG`; 0: never
#   KAFKA_IMAGE_FORCE=1           build even if an image of that name exists
#   KAFKA_IMAGE_CACHE=DIR         keep the finished image as a tarball there, and use that when the recipe is the same
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
image=$here/image
tag=${1:-apache/kafka:4.3.1}
version=${tag##*:}
label=pykstreams.kafka-test-image
cache=${KAFKA_IMAGE_CACHE-}
packages=(openjdk-17-jre-headless libc6 libgcc-s1 libstdc++6 zlib1g busybox-static bash-static)

say() { printf '%4d s  %s\n' "$SECONDS" "$*" >&2; }
sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
forced() { [ "${KAFKA_IMAGE_FORCE:-0}" = 1 ]; }

# An official image needs nothing of what follows, and so works on every system.
have=$(docker image inspect -f "{{ with .Config.Labels }}{{ index . \"$label\" }}{{ end }}" "$tag" 2>/dev/null || echo missing)
if ! forced && [ -z "$have" ]; then
  say "image $tag is there already (official)"
  exit 0
fi

# The recipe's fingerprint: what the image is made of, apart from the packages' versions.
recipe=$(cat "$here"/{build-image.sh,pom.xml} "$image"/* | sha256 | cut -c1-16)-$(uname -m)
if ! forced && [ "$have" = "$recipe" ]; then
  say "image $tag is there already ($recipe)"
  exit 0
fi
if [ "${KAFKA_IMAGE_PULL:-1}" = 1 ] && docker pull -q "$tag" >/dev/null 2>&1; then
  say "pulled $tag"
  exit 0
fi
if ! forced && [ -n "$cache" ] && [ -f "$cache/$recipe.tar" ]; then
  docker load -q -i "$cache/$recipe.tar" >/dev/null
  docker tag "$label:$recipe" "$tag"
  say "loaded $tag from $cache"
  exit 0
fi
for tool in apt-get dpkg mvn tar; do
  command -v "$tool" >/dev/null || { echo "$tag cannot be pulled, and building it needs $tool" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
root=$work/root
mkdir -p "$work/deb" "$root"
chmod 777 "$work/deb"

# Jars from Maven Central, while the Debian packages download.
mvn -q -B -f "$here/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$work/libs" >"$work/mvn.log" 2>&1 &
mvn=$!

fetch() { (cd "$work/deb" && apt-get download -q "${packages[@]}" >"$work/apt.log" 2>&1); }
fetch || { apt-get update -qq && fetch; } || { cat "$work/apt.log" >&2; exit 1; }
say "Debian packages downloaded ($(du -sh "$work/deb" | cut -f1))"
for deb in "$work"/deb/*.deb; do dpkg -x "$deb" "$root"; done
say "unpacked"

# A root without package manager: static bash and busybox, glibc, the Java runtime. No configuration scripts ran.
rm -rf "$root"/usr/share/{doc,man,lintian,locale,bash} "$root"/usr/lib/jvm/*/lib/{ct.sym,src.zip} "$root"/usr/lib/jvm/*/{legal,man}
mkdir -p "$root"/{bin,sbin,tmp,proc,sys,dev,run,home/appuser,usr/bin,usr/logs,mnt/shared/config} \
  "$root"/{etc/kafka/docker,etc/kafka/secrets,var/lib/kafka/data,opt/kafka/libs,opt/kafka/config,opt/kafka/bin}
chmod 1777 "$root/tmp"
mv "$root/bin/bash-static" "$root/bin/bash"
for applet in $("$root/bin/busybox" --list); do
  [ -e "$root/bin/$applet" ] || [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
java=$(cd "$root" && find usr/lib/jvm -path '*/bin/java' -type f | head -1)
ln -s "/$java" "$root/usr/bin/java"
ln -sfn "/${java%/bin/java}" "$root/usr/lib/jvm/default"
printf 'root:x:0:0:root:/:/bin/bash\nappuser:x:1000:1000::/home/appuser:/bin/bash\n' >"$root/etc/passwd"
printf 'root:x:0:\nappuser:x:1000:\n' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

wait "$mvn" || { cat "$work/mvn.log" >&2; exit 1; }
mv "$work"/libs/*.jar "$root/opt/kafka/libs/"
say "jars from Maven Central ($(du -sh "$root/opt/kafka/libs" | cut -f1))"
cp "$image"/{server.properties,log4j2.yaml,tools-log4j2.yaml,run,make-archive} "$root/etc/kafka/docker/"
cp "$image"/{log4j2.yaml,tools-log4j2.yaml} "$root/opt/kafka/config/"
: >"$root/opt/kafka/config/server.properties"
cp "$image/kafka-run-class.sh" "$root/opt/kafka/bin/"
for tool in $(sed -n 's/^  \(kafka-[a-z-]*\.sh\)).*/\1/p' "$image/kafka-run-class.sh"); do
  ln -s kafka-run-class.sh "$root/opt/kafka/bin/$tool"
done

# Everything belongs to appuser: simplest for a test image, and this needs no root here.
changes=(-c 'USER appuser' -c 'EXPOSE 9092' -c 'CMD ["/etc/kafka/docker/run"]'
  -c "LABEL $label=$recipe"
  -c 'ENV PATH=/usr/bin:/bin:/opt/kafka/bin LANG=C.UTF-8 JAVA_HOME=/usr/lib/jvm/default')
base=$(tar -C "$root" --owner=1000 --group=1000 --numeric-owner -c . | docker import "${changes[@]}" - "$label:base")
say "imported ${base:7:12}"

container=$(docker create --network none --hostname localhost "$label:base" /etc/kafka/docker/make-archive)
trap 'docker rm -f "$container" >/dev/null 2>&1 || true; docker rmi "$label:base" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
docker start -a "$container"   # fails when the broker does not run in this image
docker commit -c 'CMD ["/etc/kafka/docker/run"]' "$container" "$label:$recipe" >/dev/null
say "image tried, class archives made"
docker tag "$label:$recipe" "$tag"
docker image prune -f --filter "label=$label" >/dev/null   # what this name meant before
if [ -n "$cache" ]; then
  mkdir -p "$cache"
  docker save -o "$cache/$recipe.tar.part" "$label:$recipe"
  mv "$cache/$recipe.tar.part" "$cache/$recipe.tar"
fi
say "$tag ready, $(docker image inspect -f '{{ .Size }}' "$tag" | awk '{printf "%.0f MB", $1 / 1e6}')"
