"""Dead letters after the application: what they are, which were replayed, and how they are sent again."""
