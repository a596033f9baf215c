"""The fluent layer: builds the logical graph, and knows no broker, thread or file."""
