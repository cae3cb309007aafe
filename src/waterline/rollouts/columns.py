"""Token columns: what a policy says of every sampled token, computed once for a whole step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from waterline.policies import SharedPrefixLM
from waterline.rollouts.pack import LeafRow
from waterline.rollouts.ranks import Ranks
from waterline.rollouts.table import Rollouts

# Called with a row and the policy's log-probabilities and entropies (r, T) along its leaves' paths.
Seen = Callable[[LeafRow, Tensor, Tensor], None]
NAMES = ("old_logp", "ref_logp", "entropy")


@dataclass(frozen=True)
class ColumnPass:
    """Fills token columns in one pass over packed rows, without gradient.

    ``old_logp`` is log π of each model token and ``entropy`` the entropy of its distribution in
    nats, both of the policy as it stands; ``ref_logp`` is log π of the frozen ``reference``. All
    are of the softmax at ``temperature``.
    """

    policy: SharedPrefixLM
    reference: SharedPrefixLM | None
    temperature: float
    ranks: Ranks

    @torch.no_grad()
    def fill(
        self, rollouts: Rollouts, rows: Iterable[LeafRow], names: Sequence[str], seen: Seen
    ) -> Rollouts:
        """The table with the columns ``names``; ``rows`` are this rank's, and ranks share results.

        Raises:
            ValueError: a column of that name cannot be computed.
        """
        if unknown := [name for name in names if name not in NAMES]:
            raise ValueError(
                f"There is no token column {unknown[0]!r}: choose among {', '.join(NAMES)}."
            )
        filled = [np.zeros(0, dtype=np.int64)]
        parts: dict[str, list[np.ndarray]] = {name: [np.zeros(0, np.float32)] for name in names}
        own = {"old_logp", "entropy"} & set(names)
        for row in rows:
            found: dict[str, Tensor] = {}
            if own:
                logp, entropy = self.policy(row.row, self.temperature, entropy=True)
                seen(row, row.unrolled(logp), row.unrolled(entropy))
                found |= {"old_logp": logp, "entropy": entropy}
            if "ref_logp" in names:
                if self.reference is None:
                    raise ValueError("The column 'ref_logp' needs a reference policy.")
                found["ref_logp"] = self.reference(row.row, self.temperature)[0]
            filled.append(row.token)
            for name in names:
                parts[name].append(found[name].float().cpu().numpy())
        index = np.concatenate(filled)
        shared = self.ranks.gather((index, {n: np.concatenate(parts[n]) for n in names}))
        columns = dict(rollouts.columns)
        for name in names:
            columns[name] = np.full(len(rollouts.tokens), np.nan, dtype=np.float32)
            for where, values in shared:
                columns[name][where] = values[name]
        return replace(rollouts, columns=columns)
