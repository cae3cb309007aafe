"""Random numbers that are a function of what they are for, not of the order of the draws.

Every uniform is addressed by (run seed, stage, step, prompt id, sample index, token index), so
the samples of a prompt depend neither on the other prompts of the batch nor on the number of
ranks or workers, and a resumed run needs no generator state to draw the same ones.

The generator is Philox4x32-10: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011.
"""

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

_U64 = np.uint64
_LOW = _U64(0xFFFFFFFF)
_SHIFT = _U64(32)
_MULTIPLIERS = (_U64(0xD2511F53), _U64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10

Words = NDArray[np.uint64]


def stream_key(run_seed: int, stage: str, step: int) -> int:
    """The 64-bit key of one stage of one step of a run.

    Args:
        run_seed: The seed of the run.
        stage: What the numbers are for, such as ``"rollout"``; stages draw independently.
        step: The step of the run's clock.
    """
    digest = hashlib.blake2b(f"{run_seed}\0{stage}\0{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def uniforms(
    key: int, prompt_id: ArrayLike, sample: ArrayLike, token: ArrayLike
) -> NDArray[np.float64]:
    """One uniform in [0, 1) with 53 random bits for every sample and token.

    Args:
        key: From :func:`stream_key`.
        prompt_id: (n,) int64, any values.
        sample: (n,) index of the sample within its prompt, in [0, 2³²).
        token: One index, or (m,) of them, or (n, m) where rows stand at different tokens; in
            [0, 2³²).

    Returns:
        (n, m) float64; m is 1 for a single index.

    Raises:
        ValueError: A sample or token index is outside [0, 2³²), or the shapes do not fit.
    """
    ids = _ids(prompt_id)
    samples = _counter_word("sample", sample).reshape(-1, 1)
    tokens = np.atleast_2d(_counter_word("token", token))
    if samples.shape != ids.shape or tokens.shape[0] not in (1, ids.shape[0]):
        raise ValueError(
            f"uniforms got {ids.shape[0]} prompt ids, {samples.shape[0]} sample indices and tokens "
            f"of shape {tokens.shape}: give one sample index for each id, and tokens of shape (m,) "
            "or (n, m)."
        )
    first, second, _, _ = philox4x32((ids & _LOW, ids >> _SHIFT, samples, tokens), key)
    high = (first >> _U64(5)).astype(np.float64)
    low = (second >> _U64(6)).astype(np.float64)
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)  # 2**26 and 2**-53


def sample_seeds(key: int, prompt_id: ArrayLike, sample: ArrayLike) -> NDArray[np.int64]:
    """A seed in [0, 2⁶³) for every sample, for an engine that has a generator of its own.

    Args and errors are those of :func:`uniforms`, which see; (n,) int64.
    """
    ids, samples = _ids(prompt_id), _counter_word("sample", sample).reshape(-1, 1)
    first, second, _, _ = philox4x32((ids & _LOW, ids >> _SHIFT, samples, ids & _U64(0)), key)
    return ((first << _SHIFT | second) >> _U64(1)).astype(np.int64)[:, 0]


def philox4x32(
    counter: tuple[Words, Words, Words, Words], key: int
) -> tuple[Words, Words, Words, Words]:
    """The Philox4x32-10 block function, elementwise.

    Args:
        counter: Four arrays of 32-bit words held in uint64; they broadcast against each other.
        key: 64 bits, of which the low word is the first word of the key.

    Returns:
        Four arrays of 32-bit words held in uint64, of the broadcast shape.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0 = (product1 >> _SHIFT) ^ c1 ^ _U64(k0)
        c2 = (product0 >> _SHIFT) ^ c3 ^ _U64(k1)
        c1, c3 = product1 & _LOW, product0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def permutation(seed: int, epoch: int, n: int) -> NDArray[np.int64]:
    """The order of ``n`` items in one epoch: (n,) int64, a function of its arguments alone."""
    key = stream_key(seed, "permutation", epoch)
    draws = uniforms(key, np.arange(n), np.zeros(n, np.int64), 0)[:, 0]
    return np.argsort(draws, kind="stable").astype(np.int64, copy=False)


def _ids(prompt_id: ArrayLike) -> Words:
    return np.asarray(prompt_id, dtype=np.int64).reshape(-1, 1).view(np.uint64)


def _counter_word(name: str, value: ArrayLike) -> Words:
    words = np.asarray(value, dtype=np.int64)
    if words.size and (words.min() < 0 or words.max() > 0xFFFFFFFF):
        raise ValueError(
            f"A {name} index of {int(words.min())} to {int(words.max())} does not fit the counter: "
            "indices lie in [0, 2**32)."
        )
    return words.astype(np.uint64)
