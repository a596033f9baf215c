"""Topologies as they were and as they are, in what state and records depend on, and what a change does to them."""
