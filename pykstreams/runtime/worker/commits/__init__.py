"""The way out of a worker: its producer, its commits, what is noted beside them and deleted behind them."""
