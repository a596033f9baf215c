"""``retry=`` changes no type, and its serdes are those of the stream; checked, never run."""

from datetime import timedelta
from typing import assert_type

from pykstreams import KStream, Retry, Serdes


def ask(value: int) -> str:
    return str(value)


def retries(numbers: KStream[str, int]) -> None:
    patient = Retry[str, int](
        max_attempts=None, max_time=timedelta(minutes=5), retry_on=(ConnectionError, TimeoutError)
    )
    assert_type(numbers.map_values(ask, retry=patient), KStream[str, str])
    assert_type(numbers.map_values(ask, retry=Retry(max_attempts=8)), KStream[str, str])
    assert_type(numbers.map(lambda key, value: (value, key), retry=Retry(jitter=0.5)), KStream[int, str])
    assert_type(numbers.filter(lambda key, value: value > 0, retry=patient.replace(seed=7)), KStream[str, int])
    numbers.foreach(print, retry=Retry(retry_on=lambda error: "busy" in str(error)))
    numbers.map_values(ask, retry=Retry(key_serde=Serdes.string(), value_serde=Serdes.integer()))
    numbers.map_values(ask, retry=Retry[int, int]())  # type: ignore[arg-type]
