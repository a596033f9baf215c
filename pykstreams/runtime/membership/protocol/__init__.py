"""The user data that members of a classic group send each other: what a member has, and what the leader gives it."""
