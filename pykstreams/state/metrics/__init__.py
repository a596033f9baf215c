"""The metrics of stores."""
