"""Annotations of users' functions: the types that they say, and where these contradict what a step knows."""
