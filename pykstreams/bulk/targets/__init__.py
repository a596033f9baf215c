"""How rows of a user become rows of a changelog: one module a kind of store; ``choice.choose_target`` picks it."""
