"""Interactive queries as stores see them.

``queries`` are the questions, ``results`` the answers, ``position`` says up to which records a store has come, and
``answers`` is how the stores of the package answer.
"""
