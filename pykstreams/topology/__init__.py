"""From a graph of intentions to an executable plan."""
