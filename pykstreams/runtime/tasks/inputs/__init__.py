"""The input of one task: the records that wait, which of them comes next, and how far it has come."""
