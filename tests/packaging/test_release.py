"""A release out of a small repository of its own: what stands against it, its notes, its files, its commit and tag."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.packaging.source_tree import ROOT

DATE = "2026-12-01"
NOTES = """\
## 1.2.0 (2026-12-01)

### Added

- Windows that close.

  Another paragraph of it.

### Fixed

- A hole.
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_script", ROOT / "scripts/release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with our settings of the notes, two changes, and a release before them."""
    for name in ("pyproject.toml", "scripts/release_notes.md.jinja", "changelog.d/README.md", ".gitignore"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "pykstreams").mkdir()
    (tmp_path / "pykstreams/_version.py").write_text('"""The version."""\n\n__version__ = "1.1.0"\n')
    (tmp_path / "changelog.d/7-windows.added.md").write_text("Windows that close.\n\nAnother paragraph of it.\n")
    (tmp_path / "changelog.d/8.fixed.md").write_text("A hole.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n<!-- releases -->\n\n## 1.1.0 (2026-11-01)\n\n- Old.\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@example.org")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    return tmp_path


def test_entries_of_changes_become_a_section_of_the_changelog(script: ModuleType, repository: Path) -> None:
    assert script.write_notes(repository, "1.2.0", DATE) == NOTES

    changelog = (repository / "CHANGELOG.md").read_text()
    assert changelog.startswith("# Changelog\n\n<!-- releases -->\n")
    assert NOTES in changelog
    assert changelog.index("## 1.2.0") < changelog.index("## 1.1.0 (2026-11-01)\n\n- Old.")
    assert [path.name for path in (repository / "changelog.d").iterdir()] == ["README.md"]


def test_commit_and_tag_hold_version_and_notes(script: ModuleType, repository: Path) -> None:
    notes = script.write_notes(repository, "1.2.0", DATE)
    script.write_version(repository, "1.2.0")
    script.commit_and_tag(repository, "1.2.0", notes)

    assert git(repository, "show", "v1.2.0:pykstreams/_version.py").endswith('__version__ = "1.2.0"\n')
    assert git(repository, "tag", "--list", "--format=%(contents)", "v1.2.0").strip() == NOTES.strip()
    assert git(repository, "log", "-1", "--format=%s").strip() == "Release 1.2.0"
    assert git(repository, "status", "--porcelain") == ""


def test_everything_that_stands_against_a_release_is_said_at_once(script: ModuleType, repository: Path) -> None:
    script.check(repository, "1.2.0")
    git(repository, "tag", "v1.2.0")
    (repository / "CHANGELOG.md").write_text("# Changelog\n")
    for entry in (repository / "changelog.d").glob("*.*.md"):
        entry.unlink()

    with pytest.raises(script.ReleaseError) as raised:
        script.check(repository, "1.2.0")

    assert str(raised.value).splitlines() == [
        "there are changes that are not committed; commit or stash them",
        "tag v1.2.0 is there already; take the next version",
        "changelog.d has no entry, so there is nothing to release",
    ]


@pytest.mark.parametrize("version", ["1.2", "v1.2.0", "1.2.0-beta", ""])
def test_name_that_is_no_version_is_refused(script: ModuleType, repository: Path, version: str) -> None:
    with pytest.raises(script.ReleaseError, match="is no version; write it as in 1\\.2\\.3 or 1\\.2\\.3rc1"):
        script.check(repository, version)


def test_files_of_an_earlier_build_are_not_released(script: ModuleType, repository: Path) -> None:
    (repository / "dist").mkdir()
    (repository / "dist/pykstreams-1.1.0.tar.gz").touch()

    with pytest.raises(script.ReleaseError, match="dist/ holds files of an earlier build; delete them"):
        script.release(repository, "1.2.0", DATE)

    assert git(repository, "status", "--porcelain") == ""


def test_sums_are_those_of_all_files(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "b.tar.gz").write_bytes(b"b")

    script.write_sums(tmp_path)
    script.write_sums(tmp_path)

    assert (tmp_path / "SHA256SUMS").read_text() == (
        f"{hashlib.sha256(b'a').hexdigest()}  a.whl\n{hashlib.sha256(b'b').hexdigest()}  b.tar.gz\n"
    )


def test_document_of_an_environment_becomes_one_of_pykstreams(script: ModuleType) -> None:
    main = {"name": "pykstreams", "type": "application", "version": "1.2.0"}
    needed = {"name": "rocksdict", "type": "library"}

    found = script.about_pykstreams({"metadata": {"tools": []}, "components": [needed, main]})

    assert found == {
        "metadata": {"tools": [], "component": {**main, "type": "library"}},
        "components": [needed],
    }


@pytest.mark.nightly
def test_sbom_is_of_pykstreams_and_names_what_it_needs(script: ModuleType) -> None:
    document = json.loads(script.sbom_of(sys.executable))

    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    main = document["metadata"]["component"]
    assert (main["name"], main["type"]) == ("pykstreams", "library")
    refs = {one["name"]: one["bom-ref"] for one in document["components"]}
    assert {"confluent-kafka", "kafka-python", "rocksdict", "orjson"} <= refs.keys()
    assert "pykstreams" not in refs
    (needs,) = [one["dependsOn"] for one in document["dependencies"] if one["ref"] == main["bom-ref"]]
    assert {refs["confluent-kafka"], refs["rocksdict"]} <= set(needs)


@pytest.mark.nightly
def test_dry_run_of_a_release_changes_nothing(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    before = git(ROOT, "status", "--porcelain"), git(ROOT, "tag"), git(ROOT, "rev-parse", "HEAD")

    assert script.main(["99.0.0", "--dry-run"]) == 0

    told = capsys.readouterr().out
    assert told.startswith("## 99.0.0 (")
    assert told.endswith(
        "SHA256SUMS\npykstreams-99.0.0-py3-none-any.whl\npykstreams-99.0.0.cdx.json\npykstreams-99.0.0.tar.gz\n"
        "a dry run: nothing was changed here\n"
    )
    assert (git(ROOT, "status", "--porcelain"), git(ROOT, "tag"), git(ROOT, "rev-parse", "HEAD")) == before
