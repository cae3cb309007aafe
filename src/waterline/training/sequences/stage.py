"""Reinforcement learning of a language model whose responses are sequences of tokens."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from torch import Tensor

from waterline.policies import SharedPrefixLM
from waterline.rollouts import RankedEngine, SamplingParams
from waterline.runs import BadInput, stream_key
from waterline.runs.settings import Seed, Temperature, Whole
from waterline.tasks import Prompt, Task, require_whole_batches
from waterline.training.batches import Ints, further_rows, rows_at
from waterline.training.optimizer import OptimizerSettings
from waterline.training.reinforcement import ReinforcementStage
from waterline.training.sequences.candidates import SequenceCandidates, Sequences
from waterline.training.sequences.update import PolicyUpdate, UpdateSettings
from waterline.training.step import Learned, Pieces


class SequenceStage(ReinforcementStage):
    """One optimizer step or more per batch of prompts, from sampled sequences.

    Args:
        policy, task, pieces: see :class:`ReinforcementStage`; the loss is a :class:`PolicyLoss`,
            with a frozen copy of the first weights as its reference where it has a KL term.
        batch: candidate prompts B per step. temperature: of sampling and of the gradient.
        update: how a batch becomes optimizer steps.
        step_on_no_signal: whether the optimizer steps although nothing has a gradient.

    Raises:
        BadInput: The training prompts are not whole batches.
    """

    responses: ClassVar[str] = "sequences"
    policy: SharedPrefixLM

    def __init__(
        self,
        policy: SharedPrefixLM,
        task: Task,
        pieces: Pieces,
        *,
        optimizer: OptimizerSettings,
        batch: Whole,
        steps: Whole,
        seed: Seed,
        update: UpdateSettings,
        temperature: Temperature = 1.0,
        step_on_no_signal: bool = False,
    ) -> None:
        if update.minibatches > batch:
            raise BadInput(
                f"training.update.minibatches={update.minibatches} is above training.batch="
                f"{batch}: lower it, for each part needs a prompt."
            )
        self.prompts = task.splits["train"]
        require_whole_batches(len(self.prompts), batch)
        super().__init__(
            policy, task, pieces, optimizer=optimizer, steps=steps, seed=seed,
            per_epoch=len(self.prompts) // batch,
        )  # fmt: skip
        self.pieces = replace(pieces, engine=RankedEngine(pieces.engine, self.ranks))
        self.batch, self.temperature = batch, temperature
        self.reference = self._frozen_copy()
        self.update = PolicyUpdate(
            policy=policy, loss=pieces.loss, optimize=self.optimize, backward=self.backward_loss,
            settings=update, temperature=temperature, step_on_no_signal=step_on_no_signal,
            reference=self.reference, ranks=self.ranks,
        )  # fmt: skip

    def _frozen_copy(self) -> SharedPrefixLM | None:
        if not self.pieces.loss.needs_reference:
            return None
        return deepcopy(self.policy).requires_grad_(False).eval()

    def start_from(self, weights: str | Path) -> None:
        super().start_from(weights)
        if self.reference is not None:
            self.reference.load_state_dict(self.policy.state_dict())

    def params(self, step: int) -> SamplingParams:
        """How the responses of a step are sampled."""
        return SamplingParams(
            key=stream_key(self.seed, "rollout", step),
            max_tokens=self.task.max_response,
            stop=self.task.stop_tokens,
            temperature=self.temperature,
        )

    def candidates(self, step: int) -> SequenceCandidates:
        _, rows = rows_at(len(self.prompts), self.batch, self.seed, step)
        self.pieces.engine.sync(self.policy.named_weights(), version=step)
        return SequenceCandidates(
            [self.prompts[i] for i in rows], self.pieces.engine, self.pieces.verifier,
            self.task.tokenizer, self.params(step),
            add=lambda k, ids: self._further(step, k, ids), fill=self.update.fill,
            reads=self.pieces.advantage.reads,
        )  # fmt: skip

    def _further(self, step: int, k: int, taken: Ints) -> list[Prompt]:
        ids = np.array([prompt.id for prompt in self.prompts], dtype=np.int64)
        rows = further_rows(ids, taken.tolist(), self.seed, step, k)
        return [self.prompts[i] for i in rows]

    def learn(self, responses: Sequences, advantage: Tensor, weight: Tensor) -> Learned:
        self.pieces.engine.sleep()  # its memory is the update's; the next sync wakes it
        return self.update(responses, advantage, weight)
