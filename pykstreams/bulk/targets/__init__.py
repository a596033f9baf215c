"""How rows of a user become rows of a changelog: one module a kind of store, ``choose_target`` finds the right one."""
