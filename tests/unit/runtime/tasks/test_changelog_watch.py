"""On an embedded cluster a worker warns, once, before a changelog loses records."""

import logging

import pytest

from pykstreams.runtime.tasks.changelog_watch import WARN_AT_BYTES, ChangelogWatch


def test_one_warning_comes_when_a_changelog_nears_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    written = []
    watch = ChangelogWatch()
    write = watch.watched("app-counts-changelog", 2, lambda *row: written.append(row))
    other = watch.watched("app-sums-changelog", 0, lambda *row: written.append(row))
    value = b"x" * (WARN_AT_BYTES // 4)

    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            write(b"k", value, 1, ())
        few = len(caplog.messages)
        for _ in range(8):
            write(b"k", value, 1, ())
            other(b"k", None, 1, ())
            other(b"k", value, 1, ())

    assert few == 1
    assert len(caplog.messages) == 1
    assert "changelog app-counts-changelog-2 has taken about 4.2 MB" in caplog.messages[0]
    assert len(written) == 28
