"""The commands that show stores: of folders, and of running applications."""
