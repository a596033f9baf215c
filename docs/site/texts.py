"""The text of a page as the site needs it: links to files outside of docs/, and lists that follow a paragraph at once.

Invariant: what a page says is left as it is, and so is code.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = "source"
"""The folder of the site with files from outside of docs/."""

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^ *```")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_IMAGES = frozenset({".png", ".svg"})
_LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json", ".sh": "bash", ".cfg": "ini"}


def with_lists_apart(markdown: str) -> str:
    """Returns a text whose lists have the blank line before them that Markdown's oldest rules ask for.

    What can be unfolded is marked as Markdown, which these rules take for plain HTML.
    """
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        in_code ^= bool(_FENCE.match(line))
        before = lines[-1] if lines else ""
        if not in_code and _ITEM.match(line) and before and not before.startswith(" ") and not _ITEM.match(before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines).replace("<details>", "<details markdown>") + "\n"


def with_links(markdown: str, uri: str) -> str:
    """Returns the text of a page with links that hold on the site.

    :param uri: the place of the page in the site, ``guides/http.md`` or ``source/examples/README.md``.
    """
    place = file_of(uri)

    def moved(match: re.Match[str]) -> str:
        target = _target(place, match[1])
        if target is None:
            return match[0]
        there = target.removeprefix("docs/") if target.startswith("docs/") else uri_of(target)
        return posixpath.relpath(there, posixpath.dirname(uri) or ".") + (match[2] or "")

    return _LINK.sub(moved, markdown)


def targets_outside(place: str) -> list[str]:
    """Returns the files outside of docs/ that a page links to; all are paths from the root of the tree."""
    links = _LINK.findall((ROOT / place).read_text(encoding="utf-8"))
    targets = [_target(place, link) for link, _ in links]
    return [target for target in targets if target is not None and not target.startswith("docs/")]


def uri_of(target: str) -> str:
    """Returns the place in the site of a file from outside of docs/."""
    as_it_is = target.endswith(".md") or is_image(target)
    return f"{SOURCE}/{target}" if as_it_is else f"{SOURCE}/{target}.md"


def file_of(uri: str) -> str:
    """Returns the file that a page of the site is made of, as a path from the root of the tree."""
    if not uri.startswith(f"{SOURCE}/"):
        return f"docs/{uri}"
    place = uri.removeprefix(f"{SOURCE}/")
    return place if (ROOT / place).exists() else place.removesuffix(".md")


def is_image(target: str) -> bool:
    """Returns whether a file is a picture, which a page shows."""
    return Path(target).suffix in _IMAGES


def page_of(target: str) -> str:
    """Returns the text of a page that shows a file."""
    text = (ROOT / target).read_text(encoding="utf-8")
    if target.endswith(".md"):
        return text
    return f"# {target}\n\n````{_LANGUAGES.get(Path(target).suffix, 'text')}\n{text}````\n"


def _target(place: str, link: str) -> str | None:
    """The file that a link of a file means, of a folder its README; None where there is none."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    if (ROOT / target).is_dir():
        target += "/README.md"
    return target if not target.startswith("..") and (ROOT / target).is_file() else None
