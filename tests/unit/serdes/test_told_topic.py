"""Serdes around others are shown to users as those that they wrap."""

from __future__ import annotations

import pytest

from pykstreams.serdes import Serdes
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.combined_key import CombinedKeySerde
from pykstreams.serdes.composed_keys import PrefixChecked
from pykstreams.serdes.told_topic import ToldTopic


@pytest.mark.parametrize(
    "serde",
    [
        ToldTopic(Serdes.long(), "shop-join-topic-fk"),
        ToldTopic(ToldTopic(Serdes.long()), suffix="-pk"),
        PrefixChecked(Serdes.long(), Serdes.long().serializer, str),
    ],
    ids=["told", "told-twice", "checked"],
)
def test_serde_around_another_one_is_shown_as_that(serde: AnySerde) -> None:
    assert repr(serde) == "LongSerde()"


def test_serde_of_subscriptions_shows_no_topics() -> None:
    shown = repr(CombinedKeySerde(ToldTopic(Serdes.long(), "topic-fk"), ToldTopic(Serdes.string(), "topic-pk")))

    assert shown == "CombinedKeySerde(prefix=LongSerde(), suffix=StringSerde(encoding='utf-8'))"
