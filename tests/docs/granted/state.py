"""The project of the quickstart, whose ``shop.py`` the pages of docs/concepts/ import."""

from tests.docs.shop import quickstart_shop

STANDS_IN = {"shop": quickstart_shop()}
