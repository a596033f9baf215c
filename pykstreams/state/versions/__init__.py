"""Versioned key-value stores: what the value of a key was at any time of a history.

``state.interfaces.versioned_store`` is what users see and ``metered`` the outermost layer; below it ``history`` keeps
the newest value of each key apart from those that were replaced, which lie together in ``blocks``.
"""
