"""Code of users: whether it can be called, what it is called in messages, and which lines are theirs."""
