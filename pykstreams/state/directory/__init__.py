"""The state directory, and the locks on its folders."""
