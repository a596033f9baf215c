"""State in bulk: stores outside of a worker, files of sorted rows, and how a worker takes them over.

``offline`` opens a store over rows in memory or a folder that is only read; ``sst`` writes sorted rows to files;
``manifest`` says which files make up which state; ``take_over`` makes the stores of a task from them.
"""
