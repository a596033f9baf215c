"""Interactive queries: reads of a running application's stores by threads of its user.

``gate`` keeps worker and readers of a task apart, ``local`` finds the stores of this process, ``read_only`` and
``composite`` are what a reader gets, ``metadata`` says which instance holds what.
"""
