"""The one table of every metric that a run writes: its name, its unit and what it means.

The names are equal in ``metrics.jsonl``, in Weights & Biases and in the figures; training writes
no name that is missing here, figures take their axis labels from here, and
``docs/metrics.md`` is made from here.
"""

import re
from dataclasses import dataclass

from waterline.runs import BadInput


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name as written, a label for axes, its unit ("1": none), what it means.

    ``tasks`` is 'images' where only image classification writes it, whose success probability is
    known and whose responses are one label; 'sequences' where only the other tasks do; else 'all'.
    """

    name: str
    label: str
    unit: str
    meaning: str
    tasks: str = "all"

    @property
    def axis(self) -> str:
        """The label with its unit, as an axis shows it."""
        return self.label if self.unit == "1" else f"{self.label} ({self.unit})"


_ROWS = (
    ("step", "Training step", "1", "sampled batches so far; the clock of a run"),
    ("epoch", "Epoch", "1", "passes over the training prompts finished so far"),
    ("rollouts/total", "Rollouts", "responses", "responses sampled since the run began"),
    (
        "rollouts/tokens",
        "Generated tokens per step",
        "tokens",
        "response tokens sampled in this step, stop tokens included",
        "sequences",
    ),
    ("reward/mean", "Mean reward", "1", "mean reward over the responses of this step"),
    (
        "rollouts/total_tokens",
        "Generated tokens",
        "tokens",
        "response tokens sampled since the run began",
        "sequences",
    ),
    (
        "groups/mixed_of_active",
        "Mixed groups / active",
        "1",
        "share of the prompts with at least one rollout whose group holds a success and a failure",
    ),
    (
        "groups/mixed_of_batch",
        "Mixed groups / batch",
        "1",
        "share of all candidate prompts, inactive ones included, whose group holds both",
    ),
    (
        "groups/mixed_per_second",
        "Mixed groups per second",
        "1/s",
        "groups with a success and a failure, divided by the seconds of the whole step",
    ),
    (
        "allocation/active_fraction",
        "Active prompts",
        "1",
        "share of the candidate prompts that got at least one rollout, |A|/B",
    ),
    (
        "allocation/waterline",
        "Waterline steps",
        "1",
        "1 when the counts came from the waterline, 0 when the batch was uniform",
    ),
    (
        "allocation/count_min",
        "Smallest count",
        "responses",
        "smallest rollout count of an active prompt",
    ),
    (
        "allocation/count_median",
        "Median count",
        "responses",
        "median rollout count of the active prompts",
    ),
    ("allocation/count_max", "Largest count", "responses", "largest rollout count of a prompt"),
    (
        "allocation/kappa_min",
        "Smallest fidelity κ",
        "1",
        "min of κ(p̂, N) = 1 − (1 − p̂)^(N − 1) over active prompts with a success estimate",
    ),
    (
        "allocation/kappa_mean",
        "Mean fidelity κ",
        "1",
        "mean of κ(p̂, N) over active prompts with a success estimate",
    ),
    (
        "allocation/kappa_spread",
        "Spread of fidelity κ",
        "1",
        "max minus min of κ(p̂, N) over active prompts with a success estimate",
    ),
    (
        "policy/entropy",
        "Token entropy",
        "nats",
        "mean entropy of the next-token distribution per response token, at the sampling "
        "temperature",
    ),
    (
        "response/length",
        "Response length",
        "tokens",
        "mean tokens per response, stop token included",
        "sequences",
    ),
    ("loss/value", "Loss", "1", "the loss that was differentiated, over the whole step"),
    ("lr", "Learning rate", "1", "learning rate of this step"),
    (
        "grad/norm",
        "Gradient norm",
        "1",
        "l2 norm of the policy gradient after accumulation and before clipping",
    ),
    (
        "grad/cosine_ce",
        "Cosine with the CE gradient",
        "1",
        "cosine between the gradient of the sampled loss and that of cross-entropy over the full "
        "candidate batch, both before clipping, on the steps where it was due (SERA, Eq. 47)",
        "images",
    ),
    (
        "grad/skipped",
        "Skipped updates",
        "steps",
        "steps since the run began whose batch had no signal, so that the optimizer was left alone",
    ),
    (
        "engine/logp_gap",
        "Engine–trainer gap",
        "nats",
        "largest absolute difference between the engine's and the trainer's token log-probability",
        "sequences",
    ),
    (
        "success/mae",
        "Estimate error",
        "1",
        "mean absolute error of the success estimates against the exact probabilities, over the "
        "prompts of the batch",
        "images",
    ),
    (
        "success/pearson",
        "Estimate correlation",
        "1",
        "Pearson correlation of the success estimates with the exact probabilities, over the "
        "prompts of the batch; absent where either is constant",
        "images",
    ),
    (
        "data/unreadable",
        "Unreadable images",
        "images",
        "images that could not be decoded and were left out since the run began",
        "images",
    ),
    ("time/allocate", "Allocation time", "s", "seconds spent on estimates and counts"),
    ("time/sample", "Sampling time", "s", "seconds spent on sampling responses"),
    ("time/verify", "Verification time", "s", "seconds spent on verdicts"),
    ("time/update", "Update time", "s", "seconds spent on log-probabilities, loss and optimizer"),
    ("time/step", "Step time", "s", "seconds of the whole step, evaluation excluded"),
    (
        "eval/pass@{K}",
        "Pass@K",
        "1",
        "probability that K responses hold a correct one, averaged over questions: unbiased from "
        "samples (SERA, Eq. 48), exact where the success probability is known",
    ),
    (
        "eval/top1",
        "Top-1 accuracy",
        "1",
        "share of the evaluated images whose own label is the likeliest",
        "images",
    ),
)

METRICS: dict[str, Metric] = {row[0]: Metric(*row) for row in _ROWS}


def metric(name: str) -> Metric:
    """Return the documented metric called ``name`` (``eval/pass@8`` is one of ``eval/pass@{K}``).

    Raises:
        BadInput: when no metric of this name is documented.
    """
    key = re.sub(r"^eval/pass@\d+$", "eval/pass@{K}", name)
    if key not in METRICS:
        raise BadInput(
            f"Metric '{name}' is not documented in waterline.runs.metrics: add a row there "
            "or use one of its names."
        )
    return METRICS[key]


def glossary() -> str:
    """Return the table of all metrics as Markdown, for ``docs/metrics.md``."""
    lines = ["| metric | unit | tasks | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{m.name}` | {'–' if m.unit == '1' else m.unit} | {m.tasks} | "
        f"{m.meaning.replace('|', '&#124;')} |"
        for m in METRICS.values()
    ]
    return "\n".join(lines) + "\n"
