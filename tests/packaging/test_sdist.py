"""What a source distribution holds: the packages and what builds them; no tests, benchmarks or documentation."""

from __future__ import annotations

import tarfile
from pathlib import PurePosixPath

import pytest

from tests.packaging.conftest import Released
from tests.packaging.source_tree import FILES, files_of_packages

MADE = {"PKG-INFO", "MANIFEST.in"}


@pytest.mark.slow
def test_source_distribution_holds_the_packages_and_what_builds_them(released: Released) -> None:
    with tarfile.open(released.sdist) as archive:
        paths = {PurePosixPath(*PurePosixPath(one.name).parts[1:]) for one in archive if not one.isdir()}
    found = {str(path) for path in paths if path.parts[0] != "pykstreams.egg-info"} - MADE

    assert {*FILES, "pykstreams/py.typed", *(str(path) for path in files_of_packages())} == found
