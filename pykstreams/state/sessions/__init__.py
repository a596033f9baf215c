"""Session stores: rows by key, start and end of a session, for a time.

``state.interfaces.session_store`` is what users see and ``stack`` puts the layers on each other; ``metered`` is the
outermost, which finds the sessions of a key by ``order``.
"""
