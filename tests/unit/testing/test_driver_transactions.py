"""What the driver shows of records that were sent before an error."""

import pytest

from pykstreams import Serdes, StreamsBuilder
from pykstreams.errors import StreamsError
from pykstreams.testing import TopologyTestDriver

TEXT = Serdes.string()


@pytest.mark.parametrize(("guarantee", "seen"), [("at_least_once", ["x"]), ("exactly_once_v2", [])])
def test_a_failed_record_leaves_its_output_under_at_least_once_only(guarantee, seen) -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.to("out")
    stream.foreach(lambda key, value: 1 / 0)
    config = {"default.key.serde": TEXT, "default.value.serde": TEXT, "processing.guarantee": guarantee}

    with TopologyTestDriver(builder.build(), config) as driver:
        with pytest.raises(StreamsError):
            driver.create_input_topic("in").pipe_input("k", "x")

        assert [record.value.decode() for record in driver.take_produced()] == seen
