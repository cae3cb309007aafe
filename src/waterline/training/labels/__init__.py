"""Reinforcement learning with one label per response: candidates, batches, stage."""
