"""The settings of a run that no piece declares: those of the run itself and of Lightning.

A setting without a value here stands in every configuration; one with a value may be left out.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from annotated_types import Ge, Le, Lt

from waterline.runs.settings import (
    Piece,
    Section,
    Seed,
    Text,
    Threads,
    Whole,
    WholeOrZero,
    Workers,
)

# Of one prompt in one step; the tables of a step grow with it.
Rollouts = Annotated[int, Ge(1), Le(2**16)]


class Run:
    """The whole; conf/train.yaml."""

    stage: Literal["reinforcement", "base"]
    seed: Seed
    method: Text
    experiment: Text
    task: Piece
    success: Piece
    allocation: Piece
    policy: Piece
    engine: Piece
    rewards: Piece
    advantages: Piece
    losses: Piece
    evaluation: Piece
    training: Piece
    supervised: Piece | None
    trainer: Section
    logger: Piece
    base: Section
    paths: Section
    final: Section


class Base:
    """The policy that reinforcement learning starts from."""

    path: Text | None
    train_if_missing: bool


class Paths:
    """Where runs are."""

    results: Text


class Final:
    """What follows the last step."""

    split: Literal["dev", "test"] | None
    n: Whole
    rewards: Section | None
    keep_responses: bool
    gradients: Section


class FinalGradients:
    """The comparison of gradients that follows the last step."""

    n0: Sequence[Annotated[int, Ge(2), Le(2**31 - 1)]] | None  # one response has no baseline
    checkpoints: Sequence[WholeOrZero] | None


class Trainer:
    """Lightning's settings that do not change what a run is; it has no limits of its own."""

    accelerator: Literal["cpu", "gpu", "cuda", "mps", "auto"]
    devices: Whole
    num_nodes: Whole
    threads: Threads | None
    workers: Workers
    enable_progress_bar: bool
    deterministic: bool = False


class Allocation:
    """What every method takes, whether its allocator reads it or not."""

    n0: Rollouts
    n_min: Rollouts = 2
    n_max: Rollouts = 64
    u0: Annotated[float, Ge(0), Lt(1)] = 0.05


class Training:
    """What the run reads of a stage."""

    checkpoint_every: Whole
    log_every: Whole


class Evaluation:
    """What the run reads of its evaluation; ``every`` 0 is never.

    Test prompts are not for choosing settings: they are for ``final``.
    """

    split: Literal["dev", "train"]
    every: WholeOrZero


SECTIONS: dict[str, type] = {
    "": Run,
    "base": Base,
    "paths": Paths,
    "final": Final,
    "final.gradients": FinalGradients,
    "trainer": Trainer,
    "allocation": Allocation,
    "training": Training,
    "supervised": Training,
    "evaluation": Evaluation,
}
# Arguments that no configuration sets, since they are handed in when a piece is built or called.
HANDED_IN: dict[str, frozenset[str]] = {
    "engine": frozenset({"policy"}),
    "advantages": frozenset({"rewards", "group"}),
    "training": frozenset({"policy", "task", "pieces", "seed", "workers"}),
    "supervised": frozenset({"policy", "task", "seed", "engine", "verifier"}),
}
