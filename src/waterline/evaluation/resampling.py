"""Bootstrap means over questions, in chunks of bounded memory."""

import numpy as np
from numpy.typing import NDArray

CHUNK = 4_000_000  # draws held at once: 32 MB


def question_means(
    scores: NDArray[np.float64], resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """(resamples, S) means of each row of (S, Q) scores over the same Q resampled questions."""
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; draw at least 1.")
    questions = scores.shape[1]
    rows = max(1, CHUNK // questions)
    means = np.empty((resamples, scores.shape[0]))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(0, questions, size=(size, questions), dtype=np.int64)
        drawn += questions * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * questions)
        means[start : start + size] = times.reshape(size, questions) @ scores.T
    means /= questions
    return means
