"""The built-in metrics, described room by room."""
