"""Several ranks without a wrapper around the module."""

from __future__ import annotations

from typing import Any

from pytorch_lightning.strategies import DDPStrategy


class RanksStrategy(DDPStrategy):
    """Lightning's DDP launch and process group; gradients are summed by the stage itself.

    A rank may have no prompt and so no backward pass, and the losses are already divided by the
    denominator of all ranks: the mean that DDP takes at every backward pass would be wrong.
    """

    def _setup_model(self, model: Any) -> Any:
        return model

    def configure_ddp(self) -> None:
        """Leaves the module unwrapped."""
