"""The next state of a running application: a bootstrap, and what it takes to become the state of its tasks."""
