"""What the site has besides what MkDocs makes of docs/.

- Pages are written for the code host, too (``docs/site/texts.py``). Files outside of docs/ that pages link to become
  pages.
- A page of docs/reference/api/ gets signatures and docstrings below its table of names.

Invariant: no page loads anything from another host; a build in which one does fails.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs.site.texts import ROOT, file_of, is_image, page_of, targets_outside, uri_of, with_links, with_lists_apart
from scripts import api_pages

_LOADED = re.compile(r"""<(?:link|script|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""")


def on_files(files: Files, config: Any) -> Files:
    """Adds the files that pages link to, and those that these link to."""
    waiting = [file_of(page.src_uri) for page in files.documentation_pages()]
    added: set[str] = set()
    while waiting:
        for target in targets_outside(waiting.pop()):
            if target in added:
                continue
            added.add(target)
            if is_image(target):
                files.append(File.generated(config, uri_of(target), abs_src_path=str(ROOT / target)))
                continue
            files.append(File.generated(config, uri_of(target), content=page_of(target)))
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Returns the text of a page as the site needs it."""
    uri: str = page.file.src_uri
    text = with_lists_apart(with_links(markdown, uri))
    for api_page in api_pages.PAGES:
        if uri == f"reference/api/{api_page.file}.md":
            text += "".join(f"\n::: {api_page.module}.{name}\n" for name in api_pages.names_of(api_page))
    return text


def on_post_build(config: Any) -> None:
    """Refuses pages that load something from another host."""
    found = [
        f"{path}: {match[0]}"
        for path in sorted(Path(config["site_dir"]).rglob("*.html"))
        for match in _LOADED.finditer(path.read_text(encoding="utf-8"))
    ]
    if found:
        raise PluginError("pages load something from another host:\n" + "\n".join(found))
