"""The stores of one task: opened, restored, kept up to the commit, and handed over while they are open."""
