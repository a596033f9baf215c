"""Groups as their coordinator sees them: what is asked on a connection of our own, by kafka-python's messages."""
