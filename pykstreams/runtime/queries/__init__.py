"""Interactive queries: reads of a running application's stores by threads of its user.

``local`` finds the stores of this process, ``local_store`` and ``composite`` are what a reader gets, ``metadata`` says
which instance holds what; ``runtime.tasks.gate`` keeps worker and readers of a task apart.
"""
