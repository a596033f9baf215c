"""Says the mean of each ten readings of a meter.

    pykstreams run examples/means_of_readings.py --bootstrap-servers localhost:9092

``readings`` holds a number (an 8-byte float) under the meter; ``means`` gets the mean of ten of them, whenever there
are ten more.
"""

from pykstreams import Consumed, CountWindows, Grouped, Materialized, Produced, Serdes, StreamsBuilder, Topology

application_id = "means-of-readings"

SIZE = 10
text, double = Serdes.string(), Serdes.double()


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("readings", Consumed(key_serde=text, value_serde=double))
        .group_by_key(Grouped(key_serde=text, value_serde=double))
        .windowed_by(CountWindows(SIZE))
        .reduce(lambda total, reading: total + reading, materialized=Materialized("sums", value_serde=double))
        .map_values(lambda total: total / SIZE)
        .to("means", Produced(key_serde=text, value_serde=double))
    )
    return builder.build()
