"""Interactive queries as stores see them.

The questions, the answers and positions are in ``state.interfaces`` (``queries``, ``query_results``, ``position``);
``answers`` is how the stores of the package answer, ``values`` the views for readers that want less than a store keeps.
"""
