"""The group of an application as seen from outside, for operators and autoscalers: its lag, and who has which task."""
