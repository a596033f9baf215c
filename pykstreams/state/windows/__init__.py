"""Window stores: rows by key and start of a window, for a time.

``state.interfaces.window_store`` is what users see and ``stack`` puts the layers on each other; ``metered`` is the
outermost, which finds what is asked for by ``reads`` and gives operators the closures of ``rows``.
"""
