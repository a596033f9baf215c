"""Runs an example on its records.

python -m examples                       list the examples
python -m examples word_count            show what its records become, without Kafka
python -m examples word_count --bootstrap-servers localhost:9092
                                         send its records to Kafka, and show what a worker makes of them,
                                         until Ctrl-C
"""

from __future__ import annotations

import argparse
import sys

from examples.running import examples, played, received, send


def main() -> int:
    found = examples()
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m examples", description=__doc__, formatter_class=form)
    parser.add_argument("name", nargs="?", choices=found, help="the folder of the example")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT,...", help="brokers to send the records to")
    given = parser.parse_args()
    if given.name is None:
        print("\n".join(found))
        return 0
    example = found[given.name]
    if given.bootstrap_servers is None:
        for line in played(example):
            print(line)
        return 0
    send(example, given.bootstrap_servers)
    print(f"{len(example.records)} records sent", flush=True)
    try:
        for line in received(example, given.bootstrap_servers):
            print(line, flush=True)
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
