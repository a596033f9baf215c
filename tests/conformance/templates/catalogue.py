"""All templates by name."""

from __future__ import annotations

from tests.conformance.templates import (
    cogroup,
    global_stores,
    joins,
    processor_programs,
    processors,
    program_foreign_keys,
    program_joins,
    program_versioned,
    programs,
    sessions,
    stream_joins,
    suppression,
    tables,
    time_windows,
    window_stores,
    windows,
)
from tests.conformance.templates.scenario import Template

TEMPLATES: dict[str, Template] = {
    **tables.TEMPLATES,
    **programs.TEMPLATES,
    **program_joins.TEMPLATES,
    **program_foreign_keys.TEMPLATES,
    **program_versioned.TEMPLATES,
    **windows.TEMPLATES,
    **time_windows.TEMPLATES,
    **window_stores.TEMPLATES,
    **sessions.TEMPLATES,
    **suppression.TEMPLATES,
    **joins.TEMPLATES,
    **global_stores.TEMPLATES,
    **stream_joins.TEMPLATES,
    **processors.TEMPLATES,
    **processor_programs.TEMPLATES,
    **cogroup.TEMPLATES,
}


def chosen(names: list[str] | None, parts: tuple[int, ...]) -> dict[str, Template]:
    """Gives the templates named, or those of the given parts; ``LookupError`` for a name that is none."""
    for name in names or ():
        if name not in TEMPLATES:
            raise LookupError(f"there is no template {name!r}; there are {', '.join(sorted(TEMPLATES))}")
    if names:
        return {name: TEMPLATES[name] for name in names}
    return {name: template for name, template in TEMPLATES.items() if template.part in parts}
