"""Interfaces of stores, as operators, users and tasks see them, and of engines, as stores see them."""
