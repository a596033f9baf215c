"""What stores look like to operators, users and tasks, and what engines look like to stores; no implementation."""
