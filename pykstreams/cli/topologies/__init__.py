"""The commands that tell of a topology: what it is, what is wrong, and what a change would break."""
