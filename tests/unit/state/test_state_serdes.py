"""The serdes of one store, for those who write stores."""

from typing import Any

from pykstreams.core.types import Headers
from pykstreams.serdes import Serde, Serdes
from pykstreams.state import StateSerdes


class Told(Serde[str]):
    """Serializes what it is told beside the value."""

    def serialize(self, topic: str, data: Any, headers: Headers | None = None) -> bytes:
        return repr((topic, data, headers)).encode()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any:
        return topic, data, headers


def test_keys_and_values_go_both_ways_and_serdes_hear_of_topic_and_headers() -> None:
    serdes: StateSerdes[int, Any] = StateSerdes("log", Serdes.long(), Told())
    headers = (("h", b"x"),)

    assert serdes.raw_key(5) == bytes(7) + b"\5"
    assert serdes.key_from(bytes(7) + b"\5") == 5
    assert serdes.raw_value("v", headers) == repr(("log", "v", headers)).encode()
    assert serdes.value_from(b"x", headers) == ("log", b"x", headers)


def test_both_halves_of_both_serdes_are_at_hand() -> None:
    keys, values = Serdes.string(), Serdes.long()
    serdes = StateSerdes("log", keys, values)

    assert (serdes.key_serializer, serdes.key_deserializer) == (keys.serializer, keys.deserializer)
    assert (serdes.value_serializer, serdes.value_deserializer) == (values.serializer, values.deserializer)
    assert (StateSerdes.TIMESTAMP_SIZE, StateSerdes.BOOLEAN_SIZE) == (8, 1)
