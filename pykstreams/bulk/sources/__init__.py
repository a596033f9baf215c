"""The sources of rows: files, topics, whatever Spark reads; their parts, and which of their columns are what."""
