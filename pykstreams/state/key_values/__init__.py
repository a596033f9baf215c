"""Key-value stores."""
