"""Counts the readings of each meter and minute, and says each count once, also when no further reading comes.

    pykstreams run examples/more/meter_minutes.py --bootstrap-servers localhost:9092

``readings`` holds a text under the meter; ``readings-per-minute`` gets text such as ``12:03 meter-1`` with the count
(an 8-byte integer). Time is the time of the readings; once a task has had none for ten seconds, it goes on with the
wall clock, so that the last minute before a silence is said, too.
"""

from datetime import timedelta

from pykstreams import EmitStrategy, StreamsBuilder, TimeWindows, Topology, Windowed

application_id = "meter-minutes"

minutes = TimeWindows(timedelta(minutes=1), grace=timedelta(seconds=5))


def minute_and_meter(windowed: Windowed[str], count: int) -> str:
    return f"{windowed.window.start_time:%H:%M} {windowed.key}"


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("readings", str, str)
        .group_by_key()
        .windowed_by(minutes)
        .emit_strategy(EmitStrategy.ON_WINDOW_CLOSE, idle=timedelta(seconds=10))
        .count(materialized="readings-by-meter")
        .to_stream(minute_and_meter)
        .to("readings-per-minute")
    )
    return builder.build()
