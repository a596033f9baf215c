"""Tables before anything runs: their logic, the stores that they need, and the reordering before them."""
