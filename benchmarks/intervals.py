"""Simulated coverage of the *runs* interval: `python benchmarks/intervals.py`.

Writes docs/intervals.csv, from which the table of docs/intervals.md is made. Each cell is the share
of simulated experiments whose 95% interval holds the true mean. The rival is the percentile
bootstrap that resamples seeds, then questions.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from waterline.evaluation import runs_interval
from waterline.evaluation.intervals import question_means

Floats = NDArray[np.float64]
FILE = Path(__file__).parents[1] / "docs/intervals.csv"
SEEDS, SHARES = (3, 5, 10), (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
QUESTIONS, DRAWS, RIVAL_DRAWS = 200, 10_000, 1_000
# Values: their true mean, and the largest standard deviation of seeds, in logits.
VALUES = {
    "value near 50%": (0.5, 0.3),
    "value near 90%": (0.9, 0.3),
    "value near 97%": (0.97, 0.3),
    "value near 97%, wide seeds": (0.97, 50.0),
}
SPREAD, INTERACTION = 2.5, 0.5  # standard deviations of questions, and of single answers, in logits


def difference(rng: np.random.Generator, seeds: int, share: float) -> Floats:
    """(S, Q) paired differences with the true mean 0, of which seeds make ``share`` of the noise.

    Normal effects of seeds and of questions; each answer adds a tenth of the questions' variance.
    """
    of_seeds = rng.standard_normal((seeds, 1)) * np.sqrt(share * seeds)
    of_questions = rng.standard_normal((1, QUESTIONS))
    rest = rng.standard_normal((seeds, QUESTIONS)) * np.sqrt(0.1)
    return of_seeds + (of_questions + rest) * np.sqrt((1 - share) * QUESTIONS)


# A normal effect as so many equally likely values, and what a value is over the single answers.
EFFECT = norm.ppf((np.arange(300) + 0.5) / 300)
GRID = np.linspace(-60, 60, 4801)
SMOOTHED = expit(GRID[:, None] + INTERACTION * EFFECT).mean(axis=1)


def moments(centre: float, of_seeds: float, of_questions: float) -> tuple[float, float, float]:
    """Mean of the values, variance of a seed's mean, variance of a question's mean."""
    x = centre + of_seeds * EFFECT[:, None] + of_questions * EFFECT
    p = np.interp(x, GRID, SMOOTHED)
    return float(p.mean()), float(p.mean(axis=1).var()), float(p.mean(axis=0).var())


def settings(mean: float, seeds: int, share: float, most: float) -> tuple[float, float, float]:
    """Centre, and standard deviations of seeds and questions, that give this mean and share.

    All are in logits. Seeds have up to ``most``, and questions SPREAD or, for a larger share, less.
    """

    def centre(of_seeds: float, of_questions: float) -> float:
        return float(
            brentq(lambda c: moments(c, of_seeds, of_questions)[0] - mean, -1000, 1000, xtol=1e-6)
        )

    def excess(of_seeds: float, of_questions: float) -> float:
        _, a, b = moments(centre(of_seeds, of_questions), of_seeds, of_questions)
        return a / seeds * (1 - share) - b / QUESTIONS * share

    found = most, SPREAD
    if share == 0.0:
        found = 0.0, SPREAD
    elif excess(*found) > 0:
        found = float(brentq(lambda sd: excess(sd, SPREAD), 0.0, most, xtol=1e-4)), SPREAD
    else:
        found = most, float(brentq(lambda sd: excess(most, sd), 1e-4, SPREAD, xtol=1e-4))
    return centre(*found), *found


def value(
    rng: np.random.Generator, seeds: int, centre: float, of_seeds: float, of_questions: float
) -> Floats:
    """(S, Q) shares: the logistic function of normal effects of seeds, questions and answers."""
    x = centre + of_seeds * rng.standard_normal((seeds, 1))
    x = x + of_questions * rng.standard_normal((1, QUESTIONS))
    return expit(x + INTERACTION * rng.standard_normal((seeds, QUESTIONS)))


def percentiles(scores: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """The bootstrap that resamples seeds, then questions."""
    means = question_means(scores, 1_000, rng)
    drawn = rng.integers(0, len(scores), size=means.shape)
    low, high = np.percentile(np.take_along_axis(means, drawn, axis=1).mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def coverage() -> pd.DataFrame:
    """A line for each kind of score, number of seeds and share of the variance."""
    lines = []
    for seeds in SEEDS:
        for share in SHARES:
            rng = np.random.default_rng([seeds, int(100 * share)])
            draws = {"difference": (0.0, partial(difference, rng, seeds, share), False)}
            for kind, (mean, most) in VALUES.items():
                drawn = partial(value, rng, seeds, *settings(mean, seeds, share, most))
                draws[kind] = (mean, drawn, True)
            for kind, (true, draw, shares) in draws.items():
                hits = 0
                for _ in range(DRAWS):
                    _, low, high = runs_interval(draw(), shares=shares)
                    hits += low <= true <= high
                lines.append((kind, seeds, share, hits / DRAWS))
            hits = 0
            for _ in range(RIVAL_DRAWS):
                low, high = percentiles(difference(rng, seeds, share), rng)
                hits += low <= 0.0 <= high
            lines.append(("difference, percentiles", seeds, share, hits / RIVAL_DRAWS))
            print(lines[-len(draws) - 1 :], flush=True)
    return pd.DataFrame(lines, columns=["kind", "seeds", "share", "coverage"])


def table(found: pd.DataFrame) -> str:
    """The lines of docs/intervals.md, in percent."""
    wide = found.pivot_table(index=["kind", "seeds"], columns="share", values="coverage")
    order = dict.fromkeys(found.kind)
    lines = ["| | seeds | " + " | ".join(f"{share:.0%}" for share in wide) + " |"]
    lines.append("|---|--:|" + "--:|" * wide.shape[1])
    for kind in order:
        for seeds, row in wide.loc[kind].iterrows():
            lines.append(
                f"| {kind} | {seeds} | " + " | ".join(f"{100 * x:.1f}" for x in row) + " |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    found = coverage()
    found.to_csv(FILE, index=False)
    print(table(found))
