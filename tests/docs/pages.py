"""The pages of docs/ and the README, and what stands in their blocks. Each test that reads a page reads it here.

The word behind the three backticks says what a block is:

- ``python``: code, run from the top of the page to its end in one namespace; with ``>>>`` a doctest; with a first line
  such as ``# send.py`` a file of that name
- no word, right below a block of code or commands: what that block prints
- ``sh``: commands, one a line, or over several lines with a backslash; ``#`` begins a comment
- ``toml``, ``yaml``, ``json``, ``properties``, ``ini``, ``dockerfile``: configuration, which is parsed
- ``log``: what the code above it logs
- ``text``: a drawing, a layout of bytes, a tree of files; neither code nor commands
- ``java``: code of another language, beside its counterpart in Python
- ``py``: Python of another library, beside its counterpart here

What a page takes for granted, such as the stream that a fragment goes on from, is in ``tests/docs/granted/``, in a file
of its name; ``STANDS_IN`` there names what must not be used in a test, and what stands in for it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
GRANTED = Path(__file__).parent / "granted"

CODE, COMMANDS, LOG = "python", "sh", "log"
CONFIGURATION = frozenset({"toml", "yaml", "json", "properties", "ini", "dockerfile"})
LANGUAGES = frozenset({CODE, COMMANDS, LOG, "text", "java", "py", *CONFIGURATION})

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: the word behind its backticks, its text, its first line in the page, and what it prints."""

    language: str
    text: str
    line: int
    printed: str | None = None

    @property
    def commands(self) -> list[str]:
        """The commands of a block, each in one line, without comments."""
        joined = re.sub(r"\\\n\s*", "", self.text)
        lines = [re.sub(r"(^|\s+)# .*$|^#$", "", line).strip() for line in joined.splitlines()]
        return [line for line in lines if line]


@dataclass(frozen=True)
class Page:
    """A page by its path from the root: ``Page("docs/guides/http.md")``."""

    path: str

    def __str__(self) -> str:
        return self.path

    @property
    def file(self) -> Path:
        return ROOT / self.path

    @cached_property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks; those that say what another prints are a part of it."""
        found: list[Block] = []
        end = 0
        for match in _BLOCK.finditer(self.text):
            language, text = match["language"].strip(), match["text"].replace(f"\n{match['indent']}", "\n")
            text = text.removeprefix(match["indent"])
            follows = found and not self.text[end : match.start()].strip()
            if not language and follows and found[-1].language in (CODE, COMMANDS) and found[-1].printed is None:
                before = found.pop()
                found.append(Block(before.language, before.text, before.line, text))
            else:
                line = self.text.count("\n", 0, match.start("text")) + 1
                found.append(Block(language, text, line))
            end = match.end()
        return found

    def of(self, *languages: str) -> list[Block]:
        """The blocks of these languages."""
        return [block for block in self.blocks if block.language in languages]

    @property
    def code(self) -> list[Block]:
        return self.of(CODE)

    @property
    def commands(self) -> list[str]:
        """Every command line of the page, in its order."""
        return [command for block in self.of(COMMANDS) for command in block.commands]

    @property
    def granted(self) -> Path | None:
        """The file with what the page takes for granted; None if it needs nothing."""
        file = GRANTED / f"{self.file.stem.replace('-', '_').lower()}.py"
        return file if file.exists() else None

    def run(self, blocks: list[Block] | None = None, printed: list[str] | None = None) -> dict[str, Any]:
        """Runs code of the page, all of it unless told otherwise, and returns what it has defined.

        A block that prints or logs something else than the page says is an AssertionError.

        :param printed: gets what each block prints.
        """
        module = ModuleType(f"page_{self.file.stem.replace('-', '_')}")
        names = module.__dict__
        sys.modules[module.__name__] = module  # where annotations are looked up, also when the code is used later
        with contextlib.ExitStack() as stack:
            if self.granted is not None:
                exec(compile(self.granted.read_text(encoding="utf-8"), str(self.granted), "exec"), names)
            for target, substitute in names.get("STANDS_IN", {}).items():
                if isinstance(substitute, ModuleType):
                    stack.enter_context(importable(target, substitute))
                else:
                    stack.enter_context(mock.patch(target, substitute))
            log = stack.enter_context(_logged())
            for block in self.blocks if blocks is None else blocks:
                if block.language == CODE:
                    log.clear()
                    text = self._run_block(block, names)
                    if printed is not None:
                        printed.append(text)
                elif block.language == LOG and log:
                    assert log == [block.text.rstrip("\n")], f"{self.path}:{block.line}"
        return names

    def _run_block(self, block: Block, names: dict[str, Any]) -> str:
        """Runs a block of code with these names, and returns what it prints."""
        if block.text.startswith(">>> "):
            example = doctest.DocTestParser().get_doctest(block.text, names, self.path, self.path, block.line - 1)
            runner = doctest.DocTestRunner()
            report = io.StringIO()
            runner.run(example, out=report.write, clear_globs=False)
            names.update(example.globs)
            assert runner.failures == 0, report.getvalue()
            return ""
        # blank lines, so that a traceback tells the line of the page
        code = compile("\n" * (block.line - 1) + block.text, str(self.file), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if block.printed is not None:
            assert f"{self.path}:{block.line}\n{printed.getvalue()}" == f"{self.path}:{block.line}\n{block.printed}"
        return printed.getvalue()


@contextlib.contextmanager
def importable(name: str, module: ModuleType) -> Iterator[None]:
    """Lets code import a module by this name; what else it imports stays, unlike with ``mock.patch.dict``."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


@contextlib.contextmanager
def _logged() -> Iterator[list[str]]:
    """The warnings of the library."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("pykstreams")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def pages() -> list[Page]:
    """The README and all pages of docs/."""
    folder = ROOT / "docs"
    paths = [ROOT / "README.md", *sorted(folder.rglob("*.md"))]
    return [Page(path.relative_to(ROOT).as_posix()) for path in paths]


def headings(text: str) -> Iterator[str]:
    """The anchors of the headings of a text, as the code host and the site make them."""
    seen: dict[str, int] = {}
    without_code = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#{1,6} +(.+?) *$", without_code, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        yield anchor if count == 0 else f"{anchor}-{count}"
