import logging

import pytest

from training.tiny import tiny
from waterline.training.run import train_base


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """The checkpoint of a tiny supervised policy."""
    logging.getLogger("waterline").setLevel(logging.WARNING)
    config, _ = tiny(tmp_path_factory.mktemp("base"))
    return train_base(config).checkpoints / "final.pt"
