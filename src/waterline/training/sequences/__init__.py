"""Reinforcement learning with sequences of tokens: candidates, update, stage."""
