"""JSON of Python types: values, keys, unions, and models of libraries."""
