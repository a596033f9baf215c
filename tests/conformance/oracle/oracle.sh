#!/bin/bash
# usage: oracle.sh CASES_DIR_OR_FILE... [--check]
# Fills in "expect" of every case in place; with --check writes nothing and reports every case whose "expect" differs.
# KAFKA_LIBS is a folder with the jars named in pom.xml and their dependencies; without it they are fetched once into libs/.
set -e
here=$(cd "$(dirname "$0")" && pwd)
command -v java >/dev/null || { echo "oracle.sh: java is not on the PATH; install a JDK 17 or newer" >&2; exit 3; }
command -v javac >/dev/null || { echo "oracle.sh: javac is not on the PATH; install a JDK 17 or newer, not only a JRE" >&2; exit 3; }
if [ -z "$KAFKA_LIBS" ]; then
  KAFKA_LIBS=$here/libs
  if [ ! -f "$KAFKA_LIBS/.complete" ]; then
    command -v mvn >/dev/null || { echo "oracle.sh: mvn is not on the PATH; install Maven, or set KAFKA_LIBS to a folder with the jars of pom.xml" >&2; exit 3; }
    echo "oracle.sh: fetching Kafka Streams 4.3.1 into $KAFKA_LIBS" >&2
    mvn -q -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$KAFKA_LIBS" >&2
    touch "$KAFKA_LIBS/.complete"
  fi
fi
if [ ! -f "$here/classes/Oracle.class" ] || [ -n "$(find "$here/src" -name '*.java' -newer "$here/classes/Oracle.class")" ]; then
  rm -rf "$here/classes"; mkdir -p "$here/classes"
  javac -nowarn -Xlint:-deprecation -Xlint:-unchecked -cp "$KAFKA_LIBS/*" -d "$here/classes" "$here"/src/*.java 2>&1 | { grep -v "^Note:" || true; }
  [ -f "$here/classes/Oracle.class" ] || { echo "oracle.sh: the oracle did not compile; are the jars of pom.xml in $KAFKA_LIBS?" >&2; exit 3; }
fi
tmp=${TMPDIR:-/tmp}; [ -w /dev/shm ] && tmp=/dev/shm   # RocksDB state of the driver; memory is much faster than disk
exec java -Djava.io.tmpdir="$tmp" -XX:TieredStopAtLevel=1 -Xshare:auto -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$here/classes:$KAFKA_LIBS/*" Oracle "$@"
