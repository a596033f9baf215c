"""The user's own ways to share out tasks (``task.assignor.class``, KIP-924): what they see, answer and may call."""
