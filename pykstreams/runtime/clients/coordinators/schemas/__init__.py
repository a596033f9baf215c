"""Layouts of messages that ``kafka-python`` does not bring: those of the streams group protocol (KIP-1071)."""
