"""A member of a streams group, to which the brokers assign tasks (KIP-1071)."""
