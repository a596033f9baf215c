"""Interactive queries as stores see them.

The questions, the answers and positions are in ``state.interfaces`` (``queries``, ``query_results``, ``position``);
``answers`` is what the stores of the package have in common when they answer, and ``values`` the views for readers that
want less than a store keeps. The queries that a kind of store answers are in its room, in ``answers`` there.
"""
