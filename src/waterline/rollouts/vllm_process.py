"""The process of the vLLM engine: starts vLLM and answers one call after another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch
from torch import Tensor

# What vLLM must know before it is imported. Without the first it would start two more processes.
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
    "HF_HUB_OFFLINE": "1",
}
# A launcher's variables are the trainer's: to vLLM they would mean one model on several ranks.
_OF_THE_TRAINER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                   "MASTER_ADDR", "MASTER_PORT")  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """Why a call has failed, and whether for want of memory."""

    text: str
    memory: bool


def serve(
    pipe: Connection, folder: str, settings: dict[str, Any], threads: int, device: int | None
) -> None:
    """Answers (call, arguments) by (answer, fault), first for the start, until the pipe ends.

    Args:
        pipe: to the trainer. After ``sync`` it carries weights, up to a None.
        folder: holds the configuration of the model; weights come by ``sync``.
        settings: arguments of vLLM. threads: of torch on a CPU. device: this rank's GPU.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer ends this process itself
    threading.Thread(target=_end_with_the_trainer, daemon=True).start()
    os.environ.update(_ENVIRONMENT)
    for name in _OF_THE_TRAINER:
        os.environ.pop(name, None)
    if device is not None:
        seen = [n for n in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if n]
        os.environ["CUDA_VISIBLE_DEVICES"] = seen[device] if seen else str(device)
    os.dup2(2, 1)  # the trainer's output is not for vLLM's messages
    torch.set_num_threads(threads)
    try:
        server = _Server(pipe, folder, settings)
    except Exception as error:
        pipe.send((None, _fault(error)))
        return
    pipe.send((None, None))
    while True:
        try:
            call, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((getattr(server, call)(*arguments), None))
        except Exception as error:  # the trainer reports it
            pipe.send((None, _fault(error)))


class _Server:
    """vLLM with the calls that the trainer makes, each named as it comes through the pipe."""

    def __init__(self, pipe: Connection, folder: str, settings: dict[str, Any]) -> None:
        from vllm import LLM

        self.pipe = pipe
        self.llm = LLM(
            folder, load_format="dummy", skip_tokenizer_init=True, enable_prefix_caching=True,
            logprobs_mode="processed_logprobs", generation_config="vllm", seed=0,
            disable_log_stats=True, **settings,
        )  # fmt: skip

    def sync(self) -> None:
        """Weights from the pipe; the keys that the old ones gave must not be read again."""
        weights = self._weights()
        try:
            self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
            self.llm.apply_model(_pack_output)
            if not self.llm.reset_prefix_cache():
                raise RuntimeError("vLLM keeps its prefix cache, which is of the old weights.")
        finally:
            for _ in weights:  # what a fault has left in the pipe
                pass

    def _weights(self) -> Iterator[tuple[str, Tensor]]:
        while (head := self.pipe.recv()) is not None:
            name, dtype, shape = head
            data = torch.frombuffer(bytearray(self.pipe.recv_bytes()), dtype=torch.uint8)
            yield name, data.view(getattr(torch, dtype)).reshape(shape)

    def sample(
        self,
        prefixes: dict[int, list[int]],
        parents: list[int],
        seeds: list[int],
        sampling: dict[str, Any],
    ) -> tuple[list[Any], list[Any], Any]:
        """Tokens and log-probabilities of each response, and whether it stopped by itself (R,).

        Args:
            prefixes: token ids by node. parents: (R,) the node that each response begins at.
            seeds: (R,) of the responses. sampling: what is the same for all of them.
        """
        from vllm import SamplingParams

        # The log-probability of the token itself, and of no others.
        common = sampling | {"logprobs": 0, "ignore_eos": True, "detokenize": False}
        outputs = self.llm.generate(
            [{"prompt_token_ids": prefixes[node]} for node in parents],
            [SamplingParams(seed=seed, **common) for seed in seeds],
            use_tqdm=False,
        )
        tokens, logps, stopped = [], [], np.zeros(len(seeds), dtype=bool)
        for i, output in enumerate(outputs):
            (response,) = output.outputs
            tokens.append(np.array(response.token_ids, dtype=np.int64))
            pairs = zip(response.token_ids, response.logprobs, strict=True)
            logps.append(np.array([at[token].logprob for token, at in pairs], dtype=np.float32))
            stopped[i] = response.finish_reason == "stop"
        return tokens, logps, stopped

    def sleep(self) -> None:
        self.llm.sleep(level=2)  # the weights come again by the next sync

    def wake(self) -> None:
        self.llm.wake_up()


def _pack_output(model: Any) -> None:
    """On a CPU, vLLM computes logits from a packed copy of the output layer.

    When that shares its weights with the embedding, no weight comes under its name, and a reload
    leaves the old copy in place.
    """
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for layer in model.modules():
        if isinstance(layer, ParallelLMHead):
            layer.quant_method.process_weights_after_loading(layer)


def _fault(error: Exception) -> Fault:
    text = " ".join((str(error) or type(error).__name__).split())
    memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in text.lower() for words in ("out of memory", "memory", "can't allocate")
    )
    return Fault(text[:300], memory)


def _end_with_the_trainer() -> None:
    """A trainer that was killed closes no pipe while vLLM is busy, and its memory must be free."""
    trainer = multiprocessing.parent_process()
    assert trainer is not None
    wait([trainer.sentinel])
    os._exit(1)
