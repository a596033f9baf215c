"""Reads changelogs back into stores."""
