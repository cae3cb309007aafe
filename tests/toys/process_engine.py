"""An engine in a process of its own, with a model of its own: what a served model would be."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from waterline.policies import SharedPrefixLM
from waterline.rollouts import (
    Capabilities,
    EngineError,
    Rollouts,
    SamplingParams,
    SharedPrefixEngine,
)
from waterline.rollouts.table import Ints


class ProcessEngine:
    """Sends weights and tables through a pipe; the process behind it samples.

    Args:
        model: makes the language model, as ``policy.model`` does; its weights come by ``sync``.
        max_rows, max_prefill_tokens: see :class:`SharedPrefixEngine`.
    """

    responses: ClassVar[str] = "sequences"
    capabilities = Capabilities(in_process=False, inner_nodes=True)

    def __init__(
        self,
        model: Callable[[], PreTrainedModel],
        max_rows: int = 4096,
        max_prefill_tokens: int = 16384,
    ) -> None:
        self.settings = model, max_rows, max_prefill_tokens
        self.process: Any = None

    def sync(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> None:
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in named_tensors}
        self._ask("sync", weights, version)

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts:
        grown: Rollouts = self._ask("extend", rollouts, at_nodes, counts, params)
        return grown

    def sleep(self) -> None:
        """Keeps its memory."""

    wake = sleep

    def close(self) -> None:
        """Ends the process; a later call starts another one."""
        if self.process is not None:
            self.pipe.close()
            self.process.join(timeout=10)
            self.process = None

    def _ask(self, *call: Any) -> Any:
        if self.process is None:
            self._start()
        try:
            self.pipe.send(call)
            answer, fault = self.pipe.recv()
        except (EOFError, OSError) as error:
            self.process.join(timeout=10)
            raise EngineError(
                f"The engine's process has ended with exit code {self.process.exitcode}: start "
                "the run again, and it goes on from its last checkpoint."
            ) from error
        if fault is not None:
            raise EngineError(f"The engine cannot {call[0]}: {fault}")
        return answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        arguments = other, torch.get_num_threads(), *self.settings
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        other.close()


def _serve(
    pipe: Connection,
    threads: int,
    model: Callable[[], PreTrainedModel],
    max_rows: int,
    max_prefill_tokens: int,
) -> None:
    """The engine's process: answers calls until the pipe is closed."""
    torch.set_num_threads(threads)
    language_model = model()
    with torch.no_grad():
        for parameter in language_model.parameters():
            parameter.fill_(torch.nan)  # nothing can be sampled before the first sync
    engine = SharedPrefixEngine(SharedPrefixLM(language_model), max_rows, max_prefill_tokens)
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            if name == "sync":
                _take_over(language_model, *arguments)
                engine.sync((), arguments[1])
                pipe.send((None, None))
            else:
                pipe.send((engine.extend(*arguments), None))
        except Exception as error:  # the trainer's side reports it
            pipe.send((None, str(error)))


def _take_over(model: PreTrainedModel, weights: dict[str, Any], version: int) -> None:
    """Loads weights by their Hugging Face names; a tied weight comes under one of its names."""
    names = {name for name, _ in model.named_parameters()}
    if names != weights.keys():
        raise ValueError(f"the names of the weights differ: {sorted(names ^ weights.keys())}.")
    state = {name: torch.from_numpy(value) for name, value in weights.items()}
    model.load_state_dict(state, strict=False)


class ForgetsASync(ProcessEngine):
    """Leaves out the sync of this number, from 0."""

    def __init__(self, model: Callable[[], PreTrainedModel], forgotten: int) -> None:
        super().__init__(model)
        self.forgotten, self.synced = forgotten, 0

    def sync(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> None:
        if self.synced != self.forgotten:
            super().sync(named_tensors, version)
        self.synced += 1
