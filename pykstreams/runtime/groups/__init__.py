"""Tells of the group of an application from outside, for operators and autoscalers: its lag, and who has which task."""
