"""``pykstreams run --reload``: starts an application anew whenever one of its files has changed."""
