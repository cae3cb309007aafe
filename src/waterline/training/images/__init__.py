"""Training image classifiers: one label per response, and a likelihood that is known."""
