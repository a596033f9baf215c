"""What the driver shows of records that were sent before an error."""

import pytest

from pykstreams import KStream, Serdes, StreamsBuilder
from pykstreams.errors import StreamsError
from pykstreams.testing import TopologyTestDriver

TEXT = Serdes.string()


@pytest.mark.parametrize(("guarantee", "seen"), [("at_least_once", ["x"]), ("exactly_once_v2", [])])
def test_a_failed_record_leaves_its_output_under_at_least_once_only(guarantee: str, seen: list[str]) -> None:
    def fail(key: str, value: str) -> None:
        raise ZeroDivisionError

    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.to("out")
    stream.foreach(fail)
    config = {"default.key.serde": TEXT, "default.value.serde": TEXT, "processing.guarantee": guarantee}

    with TopologyTestDriver(builder.build(), config) as driver:
        with pytest.raises(StreamsError):
            driver.create_input_topic("in").pipe_input("k", "x")

        assert [(record.value or b"").decode() for record in driver.take_produced()] == seen
