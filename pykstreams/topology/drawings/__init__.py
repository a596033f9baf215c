"""Drawings of a topology: as Mermaid and Graphviz texts, and as a picture in SVG."""
