"""The runs of seconds that two versions of this project are compared by.

A job is one call of an entry point with settings of the command line alone, so that each version
may be built inside as it likes. ``{name}`` in an argument stands for the run folder of the job of
that name; it comes earlier in the list.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Job:
    """One call of an entry point.

    ``copy`` names a job whose run folder is copied first, as ``{run}`` in the arguments. A job that
    is ``alone`` gets a process of its own, since it starts others by its own command.
    """

    name: str
    arguments: tuple[str, ...]
    script: str = "train.py"
    copy: str | None = None
    alone: bool = False

    def needs(self) -> set[str]:
        """The names of the jobs whose folders it reads."""
        read = {"maze/base"} if any("{maze/base}" in a for a in self.arguments) else set()
        return read | ({self.copy} if self.copy else set())


# 7×7 has 192 mazes in all. The base succeeds now and then, so that many groups are mixed. An epoch
# has 4 steps: the first is uniform, two more follow the history.
MAZE = (
    "experiment=maze/laptop",
    "task.size=7", "task.sft=96", "task.train=32", "task.dev=8", "task.test=8",
    "task.max_response=20",
    "policy.model.hidden_size=32", "policy.model.layers=2", "policy.model.heads=2",
    "policy.model.kv_heads=1", "policy.model.ffn=64", "policy.model.max_positions=128",
    "supervised.batch=16", "supervised.steps=100", "supervised.optimizer.lr=1e-2",
    "supervised.checkpoint_every=50",
    "training.batch=8", "training.steps=9", "training.optimizer.lr=1e-3",
    "training.checkpoint_every=4",
    "allocation.n0=8", "allocation.n_max=32",
    "evaluation.every=4", "evaluation.n=8", "evaluation.ks=[1,8]", "evaluation.max_rows=32",
    "trainer.threads=1", "trainer.enable_progress_bar=false",
)  # fmt: skip
FROM_BASE = (*MAZE, "base.path={maze/base}/checkpoints/final.pt")

# An epoch has 6 steps, the last of 4 images.
IMAGES = (
    "experiment=imagenet/laptop",
    "task.classes=8", "task.size=16", "task.train=44", "task.dev=24", "task.test=24",
    "policy.model.widths=[4,8]",
    "training.batch=8", "training.steps=14", "training.diagnostics_every=2",
    "training.checkpoint_every=4",
    "allocation.n0=4", "allocation.n_max=16", "evaluation.every=5",
    "trainer.threads=1", "trainer.enable_progress_bar=false",
)  # fmt: skip

SAMPLED = ("grpo", "dr_grpo", "rloo", "reinforce", "pkpo", "maxrl", "sera", "sera_pilot")
UPDATES = ("training.update.minibatches=2", "training.update.epochs=2")
CLIP_KL_ENTROPY = (
    "losses.clip_low=0.2", "losses.clip_high=0.28", "losses.kl=k3", "losses.kl_coef=1e-3",
    "losses.entropy_coef=0.01",
)  # fmt: skip
# So few rollouts that whole batches have no signal.
SCARCE = (
    "training.batch=2", "training.steps=20", "allocation.n0=2", "allocation.n_max=4",
    "evaluation.every=20",
)  # fmt: skip

# What a method needs at these budgets.
MAZE_METHODS = dict.fromkeys(SAMPLED, ()) | {
    "pkpo": ("advantages.k=4",), "sera_pilot": ("allocation.m=4",),
}  # fmt: skip
IMAGE_METHODS = dict.fromkeys(("ce", *SAMPLED), ()) | {
    "pkpo": ("advantages.k=2",), "sera_pilot": ("allocation.m=2",),
}  # fmt: skip

_MAZE_VARIANTS = {
    "seqnorm": ("losses=seqnorm",),
    "sequence-mean": ("losses=sequence_mean",),
    "minibatches": ("training.update.minibatches=2",),
    "clip-kl-entropy": (*UPDATES, *CLIP_KL_ENTROPY),
    "dual-clip": (*UPDATES, "losses=seqnorm", "losses.clip_low=0.01", "losses.clip_high=0.01",
                  "losses.dual_clip=1.1", "losses.kl=k1", "losses.kl_coef=1e-2"),
    "epochs": ("training.update.epochs=2", "losses.clip_low=0.2", "losses.clip_high=0.2"),
    "kl-entropy-on-policy": ("losses.kl=k2", "losses.kl_coef=1e-2", "losses.entropy_coef=0.01"),
    "uncorrected": ("allocation.correct=false",),
    "scarce": SCARCE,
    "step-on-no-signal": (*SCARCE, "training.step_on_no_signal=true"),
    "temperature": ("training.temperature=0.7",),
    "max-tokens": ("training.update.max_tokens=150",),
    "max-tokens-minibatches": ("training.update.max_tokens=150", *UPDATES, *CLIP_KL_ENTROPY),
    "engine-rows": ("engine.max_rows=12", "engine.max_prefill_tokens=100"),
    "bfloat16": ("policy.precision=bfloat16",),
    "float16": ("policy.precision=float16",),
    "checkpointing": ("policy.gradient_checkpointing=true", "training.update.max_tokens=150"),
    "optimizer": ("training.optimizer.schedule=cosine", "training.optimizer.warmup_steps=3",
                  "training.optimizer.grad_clip=0.1", "training.optimizer.weight_decay=0.1"),
    "history": ("success.discount=0.5", "success.alpha=0.3", "allocation.n_min=3",
                "allocation.u0=0.2"),
    "seed": ("seed=3",),
}  # fmt: skip
_IMAGE_VARIANTS = {
    "beta": ("method=sera", "success=beta"),
    "empty-round": ("method=sera_pilot", "allocation.m=4"),
    "frozen": ("method=sera", "policy.frozen_batch_norm=true"),
    "scarce": ("method=maxrl", "training.batch=2", "allocation.n0=2", "allocation.n_max=4"),
    "step-on-no-signal": ("method=maxrl", "training.batch=2", "allocation.n0=2",
                          "allocation.n_max=4", "training.step_on_no_signal=true"),
    "optimizer": ("method=sera", "training.optimizer.warmup_steps=3",
                  "training.optimizer.grad_clip=0.5", "training.optimizer.horizon=20"),
    "workers": ("method=sera", "trainer.workers=1"),
    "seed": ("method=sera", "seed=3"),
}  # fmt: skip


def _maze() -> list[Job]:
    jobs = [Job(name="maze/base", arguments=(*MAZE, "method=sera", "stage=base"))]
    # A command that trains its base first.
    jobs += [Job(name="maze/own-base", arguments=(*MAZE, "method=sera", "supervised.steps=20"))]
    jobs += [
        Job(name=f"maze/{method}", arguments=(*FROM_BASE, f"method={method}", *extra))
        for method, extra in MAZE_METHODS.items()
    ]
    jobs += [
        Job(name=f"maze/{name}", arguments=(*FROM_BASE, "method=sera", *overrides))
        for name, overrides in _MAZE_VARIANTS.items()
    ]
    pilot = (*FROM_BASE, "method=sera_pilot")
    jobs += [
        Job(
            name="maze/pilot-updates",
            arguments=(*pilot, "allocation.m=2", *UPDATES, *CLIP_KL_ENTROPY),
        ),
        Job(name="maze/empty-round", arguments=(*pilot, "allocation.m=8")),
    ]
    jobs += [
        Job(
            name="maze/evaluate", script="evaluate.py", copy="maze/sera",
            arguments=("run={run}", "split=test", "n=12", "top_p=0.9", "threads=1"),
        )
    ]  # fmt: skip
    jobs += [
        Job(
            name=f"maze/{method}-two-ranks", alone=True,
            arguments=(*FROM_BASE, f"method={method}", "trainer.devices=2", *extra),
        )
        for method, extra in (
            ("sera", (*UPDATES, *CLIP_KL_ENTROPY)), ("sera_pilot", ("allocation.m=4",)),
        )
    ]  # fmt: skip
    return jobs


def _images() -> list[Job]:
    jobs = [
        Job(name=f"images/{method}", arguments=(*IMAGES, f"method={method}", *extra))
        for method, extra in IMAGE_METHODS.items()
    ]
    jobs += [
        Job(name=f"images/{name}", arguments=(*IMAGES, *overrides))
        for name, overrides in _IMAGE_VARIANTS.items()
    ]
    jobs += [
        Job(
            name="images/gradients", script="gradients.py", copy="images/ce",
            arguments=("run={run}", "n0=[4,8]", "batches=2", "resamplings=4", "threads=1"),
        ),
        Job(
            name="images/evaluate", script="evaluate.py", copy="images/sera",
            arguments=("run={run}", "split=test", "threads=1"),
        ),
    ]  # fmt: skip
    jobs += [
        Job(
            name="images/sera-two-ranks", alone=True,
            arguments=(*IMAGES, "method=sera", "policy.frozen_batch_norm=true",
                       "trainer.devices=2"),
        )
    ]  # fmt: skip
    return jobs


JOBS = (*_maze(), *_images())
