"""The stages that rows pass on their way to files: generator functions over Arrow batches that no engine has to know.

``encode`` → sort → ``fold`` (→ sort → ``fold.restore``) → sort → ``write``; ``batches`` says what the columns are.
"""
