"""Types of settings: their limits, and how a value given by a user becomes the value the program reads.

Invariant: ``ConfigKey.parse`` is idempotent; what it returns it accepts again, unchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from pykstreams.core.references import is_reference
from pykstreams.core.types import duration_ms

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_WHOLE_NUMBER = re.compile(r"[+-]?\d+")


class ConfigType(StrEnum):
    """The types of Kafka's settings."""

    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    LONG = "long"
    LIST = "list"
    CLASS = "class"


class Importance(StrEnum):
    """How likely a user is to need a setting."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Required:
    """The default of a setting that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = Required()


@dataclass(frozen=True, slots=True)
class Component:
    """The shape of objects that can be the value of a class-valued setting.

    :param what: completes "expected ...", for instance "a serde".
    :param methods: names an object must have; a class is made into an object first.
    :param function: whether a plain callable is the component, too.
    :param factory: whether a callable without these methods is called to give the component.
    :param base: the class that users derive from.
    :param alike: classes with the same methods, for other settings; what derives from them alone does not fit.
    """

    what: str
    methods: tuple[str, ...] = ()
    function: bool = False
    factory: bool = False
    base: type = object
    alike: tuple[type, ...] = ()

    def fits(self, value: object) -> bool:
        """Whether an object, that is no class, can be the component."""
        if self._is_for_another_setting(type(value)):
            return False
        if self.methods and all(hasattr(value, method) for method in self.methods):
            return True
        return self.function and callable(value)

    def accepts(self, value: object) -> bool:
        """Whether a value given by a user can become the component."""
        if isinstance(value, str):
            return is_reference(value)
        if isinstance(value, type):
            return not self._is_for_another_setting(value)
        return self.fits(value) or (self.factory and callable(value))

    def _is_for_another_setting(self, kind: type) -> bool:
        return issubclass(kind, self.alike) and not issubclass(kind, self.base)

    @property
    def expected(self) -> str:
        forms = "a class, an object"
        if self.function or self.factory:
            forms += ", a function"
        return f"{self.what}: {forms} or 'module:attribute'"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule of one setting beyond its type: what is expected, and whether a parsed value holds it."""

    expected: str
    holds: Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One setting: its dotted name as in Kafka's manual, type, default, limits and what it does.

    :param minimum, maximum: limits of numbers, both inclusive.
    :param choices: the values a text may have; with ``any_case`` in upper or lower case.
    :param component: what the object of a class-valued setting must look like, or each object of a list.
    :param default_text: the default as the manual shows it, where it depends on the machine.
    :param not_offered: why only the default can be used; an empty text if the setting is offered.
    """

    name: str
    type: ConfigType
    default: object
    importance: Importance
    doc: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    check: Check | None = None
    component: Component | None = None
    default_text: str | None = None
    not_offered: str = ""

    @property
    def keyword(self) -> str:
        """The name as a keyword argument: every dot an underscore."""
        return self.name.replace(".", "_")

    @property
    def expected(self) -> str:
        """The kind of value, to complete the sentence "expected ..."."""
        if self.check is not None:
            return self.check.expected
        if self.choices:
            return "one of " + ", ".join(map(repr, self.choices))
        match self.type:
            case ConfigType.BOOLEAN:
                return "true or false"
            case ConfigType.INT | ConfigType.LONG:
                return f"a whole number{self._unit}{self._limits}"
            case ConfigType.LIST:
                each = f", each {self.component.expected}" if self.component else ""
                return f"a list, or text with commas{each}"
            case ConfigType.CLASS:
                return self.component.expected if self.component else "a class"
            case _:
                return "text"

    @property
    def _unit(self) -> str:
        if self.name.endswith(".ms"):
            return " of milliseconds"
        return " of bytes" if self.name.endswith(".bytes") else ""

    @property
    def _limits(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum} to {self.maximum}"
        if self.minimum is not None:
            return f", at least {self.minimum}"
        return ""

    def parse(self, value: object) -> object:
        """Returns the value in the setting's own type; raises ``ValueError`` with what is expected."""
        if value is None and self.default is None:
            return None
        try:
            parsed = self._typed(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"expected {self.expected}") from error
        if not self._allowed(parsed):
            raise ValueError(f"expected {self.expected}")
        return parsed

    def _typed(self, value: object) -> object:
        match self.type:
            case ConfigType.BOOLEAN:
                return as_flag(value)
            case ConfigType.INT | ConfigType.LONG:
                return as_whole_number(value, duration=self.name.endswith(".ms"))
            case ConfigType.LIST:
                return as_list(value)
            case ConfigType.CLASS:
                return value.strip() if isinstance(value, str) else value
            case _:
                text = as_text(value)
                if self.any_case:
                    by_lower = {choice.lower(): choice for choice in self.choices}
                    return by_lower.get(text.lower(), text)
                return text

    def _allowed(self, value: object) -> bool:
        if isinstance(value, int) and not isinstance(value, bool):
            limit = INT_MAX if self.type is ConfigType.INT else LONG_MAX
            low = -limit - 1 if self.minimum is None else self.minimum
            high = limit if self.maximum is None else self.maximum
            if not low <= value <= high:
                return False
        if self.choices and value not in self.choices:
            return False
        if self.component is not None:
            each = value if isinstance(value, tuple) else (value,)
            if not all(map(self.component.accepts, each)):
                return False
        return self.check is None or self.check.holds(value)


def as_flag(value: object) -> bool:
    """A boolean, or the texts ``true`` and ``false`` in any case."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(f"{value!r} is neither true nor false")


def as_whole_number(value: object, *, duration: bool = False) -> int:
    """An ``int`` or its digits as text; a duration may be a ``timedelta``, too, and becomes milliseconds."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        return int(value)
    if duration and isinstance(value, timedelta):
        return duration_ms(value, "the duration", negative=True)
    raise ValueError(f"{value!r} is no whole number")


def as_text(value: object) -> str:
    """Text without blanks around it; a path becomes its text."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return str(value).strip()
    raise TypeError(f"{value!r} is no text")


def as_list(value: object) -> tuple[object, ...]:
    """A list or tuple as it is, or the parts of a text between commas."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        return tuple(parts) if parts != [""] else ()
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray):
        return tuple(part.strip() if isinstance(part, str) else part for part in value)
    raise TypeError(f"{value!r} is no list")
