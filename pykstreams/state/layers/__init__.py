"""The layers that stores of all kinds are made of: metered, caching, changelogging."""
