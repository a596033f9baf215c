"""One task: its compiled path, the queue of its records, its sinks, and what happens when one of them fails."""
