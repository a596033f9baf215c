"""The state of stores read as rows: for data frames of Spark, and for files."""
