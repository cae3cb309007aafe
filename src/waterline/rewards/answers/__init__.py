"""Answers to mathematical questions: found in a response, read, and compared."""
