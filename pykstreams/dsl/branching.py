"""``KStream.split()``: each record goes to the first branch whose predicate holds for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from pykstreams.core.errors import TopologyError
from pykstreams.core.names import valid_name
from pykstreams.core.types import Predicate, Untold
from pykstreams.dsl.options import Options
from pykstreams.dsl.place import Place, record_serdes_of
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.user_calls import calls, check_option
from pykstreams.processors import Branch, PassThrough
from pykstreams.topology.graph import OperatorNode

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
BK = TypeVar("BK", default=Untold)
BV = TypeVar("BV", default=Untold)


@dataclass(frozen=True)
class Branched(Options, Generic[BK, BV]):
    """A branch: its name, and what is done with its stream.

    With ``function`` the stream that it returns is the one in the result of the split (``None``: the branch is not in
    it); with ``consumer`` the branch is not in it either. The two exclude each other.

    All streams of the result have keys and values of the types of the stream that is split, as in Kafka Streams: a
    branch that becomes a stream of other types is for ``consumer``, or to be taken out of the result first.
    """

    name: str | None = None
    function: Callable[[KStream[BK, BV]], KStream[BK, BV] | None] | None = field(default=None, kw_only=True)
    consumer: Callable[[KStream[BK, BV]], None] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.name is not None:
            valid_name(self.name)
        check_option(self, "function", "stream")
        check_option(self, "consumer", "stream")
        if self.function is not None and self.consumer is not None:
            raise ValueError(f"branch {self.name!r} has a function and a consumer; give one of them")


class BranchedKStream(Generic[K, V]):
    """A stream being split. A record for which no predicate holds goes to the default branch, or nowhere.

    The result maps names to streams: ``<prefix><name>``, or ``<prefix><number>`` where no name was given, counted
    from 1, with 0 for the default branch. Source: ``BranchedKStream``, 4.3.1 (KIP-418).
    """

    def __init__(self, place: Place, name: str | None, make_stream: Callable[[Place], KStream[K, V]]) -> None:
        self._place = place
        self._make_stream = make_stream
        self._prefix = place.graph.namer.named(name, "KSTREAM-BRANCH-")
        self._predicates: list[Predicate[K, V] | None] = []
        self._names: list[str] = []
        self._branches: _Branches[K, V] = _Branches()
        self._node = OperatorNode(self._prefix, self._operator)
        place.graph.add(self._node, place.node)

    def __repr__(self) -> str:
        return self._place.shown_as("BranchedKStream")

    @property
    def _record_serdes(self) -> RecordSerdes:
        return record_serdes_of(self._place)

    @calls(predicate="key, value")
    def branch(self, predicate: Predicate[K, V], branched: Branched[K, V] | str | None = None) -> BranchedKStream[K, V]:
        """Adds a branch for the records for which ``predicate(key, value)`` holds and no earlier one did.

        ``TopologyError`` where there is a default branch already.
        """
        self._refuse_after_default("call branch before it")
        self._add(predicate, branched, len(self._predicates) + 1)
        return self

    def default_branch(self, branched: Branched[K, V] | str | None = None) -> dict[str, KStream[K, V]]:
        """Adds a branch for all other records, and returns the branches by name; there is one (``TopologyError``)."""
        self._refuse_after_default("call default_branch once")
        self._add(None, branched, 0)
        return self._branches

    def no_default_branch(self) -> dict[str, KStream[K, V]]:
        """Drops all other records, and returns the branches by name."""
        return self._branches

    def _refuse_after_default(self, cure: str) -> None:
        if None in self._predicates:
            raise TopologyError(f"{self._prefix} has a default branch already, to which all other records go; {cure}")

    def _operator(self) -> Branch[K, V]:
        return Branch(tuple(self._predicates), tuple(self._names))

    def _add(self, predicate: Predicate[K, V] | None, branched: Branched[K, V] | str | None, number: int) -> None:
        options: Branched[K, V] = branched if isinstance(branched, Branched) else Branched(branched)
        name = self._prefix + (options.name if options.name is not None else str(number))
        self._predicates.append(predicate)
        self._names.append(name)
        place = self._place
        place.graph.namer.node(name)
        node = OperatorNode(name, PassThrough)
        place.graph.add(node, self._node)
        stream = self._make_stream(
            Place(place.graph, node, name, place.key_serde, place.value_serde, place.sources, place.rekeyed)
        )
        if options.consumer is not None:
            options.consumer(stream)
            return
        result = stream if options.function is None else options.function(stream)
        if result is None:
            return
        if not isinstance(result, type(stream)):
            raise TypeError(f"function of branch {name!r} returned {result!r}; expected a KStream, or None")
        self._branches[name] = result


class _Branches(dict[str, "KStream[K, V]"], Generic[K, V]):
    """The branches by name; an error for a name that none has tells those that there are."""

    def __missing__(self, name: str) -> KStream[K, V]:
        known = ", ".join(map(repr, self)) or "none"
        raise KeyError(f"no branch is called {name!r}; there are {known}: each name begins with that of split")
