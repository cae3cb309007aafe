"""Comparing the gradients of methods at the same parameters."""
