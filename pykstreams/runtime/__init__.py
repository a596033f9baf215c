"""Runs a topology against a cluster; knows no DSL."""
