"""Jobs of one sweep share a base policy: one trains it, the others wait."""

import threading
import time

from waterline.runs import RunFolder
from waterline.training import run


def test_waits_for_the_process_that_trains_the_base(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_BASE_POLL_SECONDS", 0.01)
    folder = RunFolder(tmp_path / "base")
    trained = []

    def train_base(config, task):
        with folder:
            trained.append(threading.current_thread().name)

    monkeypatch.setattr(run, "train_base", train_base)
    with RunFolder(folder.root):
        waiting = threading.Thread(target=run._train_base_once, args=({}, None), name="second")
        waiting.start()
        time.sleep(0.1)
        assert trained == []
    waiting.join(5)
    assert trained == ["second"]
