"""``pykstreams init``: a project to start from."""
