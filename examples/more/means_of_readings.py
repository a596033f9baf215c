"""Says the mean of each ten readings of a meter.

    pykstreams run examples/more/means_of_readings.py --bootstrap-servers localhost:9092

``readings`` holds a number (an 8-byte float) under the meter; ``means`` gets the mean of ten of them, whenever there
are ten more.
"""

from pykstreams import CountWindows, StreamsBuilder, Topology

application_id = "means-of-readings"

SIZE = 10


def mean(total: float) -> float:
    return total / SIZE


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("readings", str, float)
        .group_by_key()
        .windowed_by(CountWindows(SIZE))
        .reduce(lambda total, reading: total + reading, materialized="sums")
        .map_values(mean)
        .to("means")
    )
    return builder.build()
