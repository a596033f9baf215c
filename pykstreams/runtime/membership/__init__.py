"""The place of a worker in the group: which tasks are its own, and what was committed for them."""
