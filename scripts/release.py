"""Makes a release: the notes out of changelog.d, the files to publish with their list of contents, a commit and a tag.

    nox -s release -- 0.2.0 --dry-run     does all of it in a copy of the repository, and shows the notes
    nox -s release -- 0.2.0               does it here; publishing and pushing are left to you, and said at the end

The folder dist/ then holds the wheel, the source distribution, the SBOM (CycloneDX) of what pip installs with
``pykstreams[http]`` on this Python, and SHA256SUMS of all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VERSION_FILE = "pykstreams/_version.py"
NAME = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
EXTRAS = "http"


class ReleaseError(Exception):
    """A reason why no release can be made, with what to do."""


def check(root: Path, version: str) -> None:
    """Raises ``ReleaseError`` with all that stands against a release."""
    if reasons := list(_reasons(root, version)):
        raise ReleaseError("\n".join(reasons))


def _reasons(root: Path, version: str) -> Iterator[str]:
    if not NAME.fullmatch(version):
        yield f"{version!r} is no version; write it as in 1.2.3 or 1.2.3rc1"
    if _said(root, "git", "status", "--porcelain"):
        yield "there are changes that are not committed; commit or stash them"
    if _said(root, "git", "tag", "--list", f"v{version}"):
        yield f"tag v{version} is there already; take the next version"
    if not any(path.suffix == ".md" for path in (root / "changelog.d").glob("*.*.md")):
        yield "changelog.d has no entry, so there is nothing to release"


def write_notes(root: Path, version: str, date: str) -> str:
    """Moves the entries of changelog.d into CHANGELOG.md, and returns the section that was added."""
    options = ("--version", version, "--date", date)
    notes = _said(root, sys.executable, "-m", "towncrier", "build", "--draft", *options)
    _said(root, sys.executable, "-m", "towncrier", "build", "--yes", *options)
    return notes[notes.index(f"## {version}") :].strip() + "\n"


def write_version(root: Path, version: str) -> None:
    """Writes the literal that setup.cfg and the package read."""
    file = root / VERSION_FILE
    text, count = re.subn(r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"', file.read_text())
    if count != 1:
        raise ReleaseError(f"{VERSION_FILE} has no line __version__ = ...; write it again")
    file.write_text(text)


def commit_and_tag(root: Path, version: str, notes: str) -> None:
    """Commits what was written, under an annotated tag that has the notes."""
    _said(root, "git", "add", "--all")
    _said(root, "git", "commit", "--quiet", "--message", f"Release {version}")
    # --cleanup: headings of the notes begin with a #, as comments do
    _said(root, "git", "tag", "--annotate", "--cleanup=whitespace", "--message", notes, f"v{version}")


def build(root: Path, target: Path) -> Path:
    """Builds the source distribution, and out of it the wheel, which is returned."""
    _said(root, sys.executable, "-m", "build", "--outdir", str(target), str(root))
    (wheel,) = target.glob("*.whl")
    return wheel


def write_sbom(wheel: Path, target: Path) -> None:
    """Writes what pip installs with a wheel, found in an environment of its own."""
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        _said(target, python, "-m", "pip", "install", "--quiet", f"{wheel}[{EXTRAS}]")
        _said(target, python, "-m", "pip", "uninstall", "--yes", "--quiet", "pip")  # it came with the environment only
        (target / f"{wheel.name.split('-py3')[0]}.cdx.json").write_text(sbom_of(python))


def sbom_of(python: str) -> str:
    """Returns the CycloneDX document, checked against its schema, of an environment that pykstreams is installed in."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--validate", python]
    return json.dumps(about_pykstreams(json.loads(_said(ROOT, *command))), indent=2) + "\n"


def about_pykstreams(document: dict[str, Any]) -> dict[str, Any]:
    """Makes the document of an environment one of pykstreams, whose components are what it needs."""
    parts = document["components"]
    (main,) = [one for one in parts if one["name"] == "pykstreams"]
    metadata = {**document["metadata"], "component": {**main, "type": "library"}}
    return {**document, "metadata": metadata, "components": [one for one in parts if one is not main]}


def write_sums(target: Path) -> None:
    """Writes SHA256SUMS, as ``sha256sum --check`` reads it."""
    files = sorted(path for path in target.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (target / "SHA256SUMS").write_text("".join(lines))


def release(root: Path, version: str, date: str) -> str:
    """Does all of it in one repository, and returns the notes."""
    check(root, version)
    target = root / "dist"
    if target.exists() and any(target.iterdir()):
        raise ReleaseError("dist/ holds files of an earlier build; delete them")
    notes = write_notes(root, version, date)
    write_version(root, version)
    write_sbom(build(root, target), target)
    write_sums(target)
    commit_and_tag(root, version, notes)
    return notes


def _said(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="do it in a copy, which is thrown away")
    given = parser.parse_args(arguments)
    date = datetime.now(UTC).date().isoformat()
    try:
        if not given.dry_run:
            print(release(ROOT, given.version, date))
            print(f"made v{given.version}; now: git push --follow-tags && twine upload dist/*.whl dist/*.tar.gz")
            return 0
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            copy = Path(folder) / "copy"
            _said(ROOT, "git", "clone", "--quiet", str(ROOT), str(copy))
            print(release(copy, given.version, date))
            print("\n".join(sorted(path.name for path in (copy / "dist").iterdir())))
            print("a dry run: nothing was changed here")
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
