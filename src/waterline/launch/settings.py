"""The settings of the commands, but for those of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from annotated_types import MinLen

from waterline.runs.settings import (
    Section,
    Seed,
    Share,
    Temperature,
    Text,
    Threads,
    Whole,
    WholeOrZero,
)

Scale = Literal["laptop", "paper"]
HeldOut = Literal["dev", "test"]
SomeWhole = Whole | Sequence[Whole] | None


class Evaluate:
    """conf/evaluate.yaml; checked also where the run's own evaluation does not read it."""

    run: Text
    checkpoint: WholeOrZero | Text
    split: Text
    n: Whole
    ks: SomeWhole
    temperature: Temperature
    top_p: Share
    top_k: WholeOrZero
    max_rows: Whole
    rewards: Section | None
    keep_responses: bool
    threads: Threads | None


class Show:
    """conf/show.yaml."""

    run: Text
    split: HeldOut
    step: WholeOrZero | None
    prompt: WholeOrZero | None
    verdict: Literal["correct", "wrong", "unparseable", "timeout", "error", "capped"] | None
    limit: Whole


class Gradients:
    """conf/gradients.yaml."""

    run: Text
    methods: Text | Sequence[Text]
    n0: SomeWhole
    n_max_per_n0: Whole
    checkpoints: WholeOrZero | Sequence[WholeOrZero] | None
    batches: Whole
    resamplings: Whole
    threads: Threads | None


class Report:
    """conf/report.yaml."""

    table: Whole | Text | None
    figure: Whole | Text | None
    scale: Scale
    folder: Text | None
    split: HeldOut
    estimator: Text
    estimator_of: Section
    root: Text
    paper: Text
    baseline: Text
    settings: Text | Sequence[Text] | None
    ks: SomeWhole
    curve_ks: SomeWhole
    curve_split: HeldOut
    tables: Section
    figures: Section


class Reproduce:
    """conf/reproduce.yaml."""

    table: Whole
    scale: Scale
    seeds: Seed | Annotated[Sequence[Seed], MinLen(1)]
    dry_run: bool
    results: Text
    overrides: Sequence[Text]
    n: Whole | None
    tables: Section
