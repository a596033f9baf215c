"""What every supplier of a key-value store is, versioned ones among them."""

from __future__ import annotations

from pykstreams.state.engines.engine import Engine
from pykstreams.state.layout import WITH_HEADERS, Layout
from pykstreams.state.spec import StoreSupplier


class KeyValueBytesStoreSupplier(StoreSupplier[Engine]):
    """Makes engines of key-value stores."""

    layout: Layout
    """How rows are kept by an engine on disk; one in memory keeps what the store above gives it."""

    @property
    def with_headers(self) -> bool:
        """Whether rows keep their headers."""
        return self.layout is WITH_HEADERS
