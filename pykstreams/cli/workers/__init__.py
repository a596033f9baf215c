"""The command that runs workers, as one process or several, and what each of them serves."""
