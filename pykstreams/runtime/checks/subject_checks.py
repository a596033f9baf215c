"""Whether the schemas of an application fit the subjects of its schema registries, before the first record is written.

Registries are asked side by side, all within one limit; what none has answered by then is told as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from threading import Thread
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.serdes.registry.first_requests import FirstRequest
from pykstreams.serdes.registry.registry_address import shown_registry
from pykstreams.serdes.registry.subject_answers import Outcome, RegistryDownError, SubjectAnswer, answer, requests
from pykstreams.topology.checks.written_subjects import CHOSEN, SchemaUse, schema_uses
from pykstreams.topology.plan import TopologyPlan

REGISTRY_PATIENCE_S: Final = 15.0
"""How long registries are given to answer, all together."""

_UNKNOWN: Final = "?"


@dataclass(frozen=True, slots=True)
class SubjectCheck:
    """The result for one subject.

    :param registry: the URL of the registry.
    :param subject: ``?`` where the serializer did not come to ask for one.
    :param used_for: the keys and values that are written with the schema, ``value of orders``.
    """

    registry: str
    subject: str
    used_for: tuple[str, ...]
    answer: SubjectAnswer


def subject_checks(
    plan: TopologyPlan, config: StreamsConfig, *, limit_s: float = REGISTRY_PATIENCE_S
) -> list[SubjectCheck]:
    """Asks the registries of a topology about every subject that it writes to; nothing is registered.

    :param limit_s: how long to wait for all of them, in seconds.
    """
    by_registry: dict[str, list[SchemaUse]] = {}
    for use in schema_uses(plan, config):
        by_registry.setdefault(shown_registry(use.serde.client.config()), []).append(use)
    asked = [_Registry(url, uses) for url, uses in by_registry.items()]
    for done in wait([_begun(one.ask) for one in asked], timeout=limit_s).done:
        done.result()
    return [check for one in asked for check in one.checks(f"the registry did not answer within {limit_s:g} s")]


def subject_findings(checks: list[SubjectCheck]) -> Iterator[Finding]:
    """Yields an error for each subject that cannot be written to, and a warning for each that is not known."""
    for one in checks:
        if not one.answer.outcome.is_bad and one.answer.outcome is not Outcome.NOT_CHECKED:
            continue
        known = one.answer.outcome in (Outcome.INCOMPATIBLE, Outcome.NOT_REGISTERED)
        what = "; ".join((f"{one.answer.outcome}: {one.answer.what}", *one.answer.reasons))
        where = f"{one.subject} ({', '.join(one.used_for)})"
        severity = Severity.ERROR if known else Severity.WARNING
        yield Finding(severity, "subjects", what, where, one.answer.cure or "see the message")


@dataclass(slots=True)
class _Question:
    """A question for a subject, and the answer once there is one."""

    subject: str
    use: SchemaUse
    request: FirstRequest | None
    answer: SubjectAnswer | None = None


class _Registry:
    """One registry, with what is asked of it and what has been answered so far; written by one thread.

    Each serde asks by its own client, since credentials may differ.
    """

    def __init__(self, url: str, uses: list[SchemaUse]) -> None:
        self._url = url
        self._uses = uses
        self._questions: list[list[_Question]] = []
        """Those of each use, in their order, as far as they are known."""
        self._down: str | None = None

    def ask(self) -> None:
        """Asks all questions in turn; after one without any answer no more."""
        for use in self._uses:
            self._questions.append(_questions(use))
        known: dict[Hashable, SubjectAnswer] = {}
        for question in (one for of_use in self._questions for one in of_use):
            request, client = question.request, question.use.serde.client
            if request is None:
                continue
            key = (id(client), repr(request))
            try:
                question.answer = known[key] = known.get(key) or answer(client, request)
            except RegistryDownError as error:
                self._down = f"the registry does not answer ({error})"
                return

    def checks(self, late: str) -> list[SubjectCheck]:
        """Returns the outcomes, one for each schema of a subject; ``late`` is said of what is not answered."""
        begun = tuple(self._questions)
        rest = [_Question(_UNKNOWN, use, None) for use in self._uses[len(begun) :]]
        cure = "see whether its URL is right and it runs, and check again"
        unanswered = SubjectAnswer(Outcome.NOT_ASKED, self._down or late, cure)
        found: dict[Hashable, SubjectCheck] = {}
        for one in (*(one for of_use in begun for one in of_use), *rest):
            got = one.answer or unanswered
            key = (one.subject, _schema_of(one.request), got)
            before = found[key].used_for if key in found else ()
            used_for = tuple(dict.fromkeys((*before, str(one.use))))
            found[key] = SubjectCheck(self._url, one.subject, used_for, got)
        return list(_without_clashes(list(found.values())))


def _questions(use: SchemaUse) -> list[_Question]:
    if use.topic == CHOSEN:
        unknown = SubjectAnswer(Outcome.NOT_CHECKED, "the topic is chosen per record")
        return [_Question(_UNKNOWN, use, None, unknown)]
    asked = requests(use.serde, use.topic)
    if isinstance(asked, SubjectAnswer):
        return [_Question(_UNKNOWN, use, None, asked)]
    return [_Question(one.subject, use, one) for one in asked]


def _schema_of(request: FirstRequest | None) -> Hashable:
    """The schema of a request as text; ``Schema`` can be compared, though not hashed in each release."""
    return None if request is None or request.schema is None else str(request.schema.to_dict())


def _without_clashes(checks: list[SubjectCheck]) -> Iterator[SubjectCheck]:
    """Yields the checks; several new schemas for one subject are not known to fit each other."""
    new = Counter(one.subject for one in checks if one.answer.outcome in (Outcome.NEW_SUBJECT, Outcome.NEW_VERSION))
    for one in checks:
        if one.answer.outcome in (Outcome.NEW_SUBJECT, Outcome.NEW_VERSION) and new[one.subject] > 1:
            what = (
                f"this topology would register {new[one.subject]} schemas there, which the registry cannot compare yet"
            )
            cure = "say is_key=True in a serde of keys, or register one of the schemas and check again"
            yield replace(one, answer=SubjectAnswer(Outcome.NOT_ASKED, what, cure))
        else:
            yield one


def _begun(ask: Callable[[], None]) -> Future[None]:
    """Runs a function in a thread of its own, which a process that ends does not wait for."""
    future: Future[None] = Future()

    def run() -> None:
        try:
            ask()
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="schema-registry-check", daemon=True).start()
    return future
