"""Times the drawing of glyph images on one core: a table, and a last line of JSON.

python benchmarks/glyphs.py
"""

import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time

import numpy as np
import torch

from waterline.tasks.images.glyphs import GlyphsTask

BATCH = 64
TARGET = 5000


def images_per_second(task: GlyphsTask, batches: int = 100) -> tuple[float, float, float]:
    """Seconds of the first batch with its masks, then images a second of wall and CPU time."""
    split = task.splits["train"]
    rows = np.random.default_rng(0).permutation(len(split))[: batches * BATCH].reshape(-1, BATCH)
    start = time.perf_counter()
    split.load(rows[0], None)
    first = time.perf_counter() - start
    wall, cpu = time.perf_counter(), time.process_time()
    for batch in rows:
        split.load(batch, None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return first, rows.size / wall, rows.size / cpu


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    rows = []
    print("classes  first batch s  images/s  images/CPU s  target")
    for classes in (256, 1000):
        first, wall, cpu = images_per_second(GlyphsTask(classes=classes))
        row = {
            "classes": classes,
            "first_batch_s": round(first, 2),
            "images_per_s": round(wall),
            "images_per_cpu_s": round(cpu),
            "target_per_s": TARGET,
        }
        rows.append(row)
        print(f"{classes:>7} {first:>14.2f} {wall:>9.0f} {cpu:>13.0f} {TARGET:>7}")
    print(json.dumps({"benchmark": "glyphs", "batch": BATCH, "size": 32, "rows": rows}))


if __name__ == "__main__":
    main()
