"""Looks at a group from outside, for tools: who its members are, what it has committed."""
