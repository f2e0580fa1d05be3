"""Other people's measurements of model loading, where `WORKBENCH_DATA` holds them."""

import functools
import json
from pathlib import Path

import polars as pl

from workbench.errors import InputError
from workbench.paths import measured_folder

SOURCE = "ServerlessLLM benchmarks/results/h100_2025, Apache-2.0 licence"
FILES = {
    ("ServerlessLLM", "NVMe", "Qwen3-32B"): "random_Qwen_Qwen3-32B_sllm_30_random",
    ("ServerlessLLM", "NVMe", "DeepSeek-R1-Qwen-32B"): "random_deepseek-ai_DeepSeek-R1-Distill-Qwen-32B_sllm_30_random",
    ("ServerlessLLM", "NVMe", "Llama-3.1-8B"): "random_meta-llama_Llama-3.1-8B-Instruct_sllm_30_random",
    ("ServerlessLLM", "host memory", "Qwen3-32B"): "cached_Qwen_Qwen3-32B_sllm_5_cached",
    ("ServerlessLLM", "host memory", "DeepSeek-R1-Qwen-32B"): (
        "cached_deepseek-ai_DeepSeek-R1-Distill-Qwen-32B_sllm_5_cached"
    ),
    ("safetensors", "NVMe", "Qwen3-32B"): "random_Qwen_Qwen3-32B_safetensors_30_random",
    ("safetensors", "NVMe", "DeepSeek-R1-Qwen-32B"): (
        "random_deepseek-ai_DeepSeek-R1-Distill-Qwen-32B_safetensors_30_random"
    ),
    ("safetensors", "NVMe", "Llama-3.1-8B"): "random_meta-llama_Llama-3.1-8B-Instruct_safetensors_30_random",
    ("safetensors", "host memory", "Qwen3-32B"): "cached_Qwen_Qwen3-32B_safetensors_5_cached",
    ("safetensors", "host memory", "DeepSeek-R1-Qwen-32B"): (
        "cached_deepseek-ai_DeepSeek-R1-Distill-Qwen-32B_safetensors_5_cached"
    ),
}
"""(loader, where the weights lie, model) -> file of measured runs."""


def measured_loads() -> pl.DataFrame | None:
    """Every measured load: `loader, storage, model, seconds`; None where the measurements are not on this machine.

    Raises:
        InputError: a file is missing or broken.
    """
    folder = measured_folder()
    return None if folder is None else _read(folder)


@functools.cache
def _read(folder: Path) -> pl.DataFrame:
    rows = [
        (*key, seconds)
        for key, name in FILES.items()
        for seconds in _seconds(folder / "serverlessllm" / f"h100_2025_{name}.json")
    ]
    return pl.DataFrame(rows, schema=["loader", "storage", "model", "seconds"], orient="row")


def _seconds(path: Path) -> list[float]:
    try:
        return [float(run["loading_time"]) for run in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        raise InputError("no such file", "check the folder that WORKBENCH_DATA names", file=path) from None
    except (ValueError, KeyError, TypeError):
        raise InputError("holds no loading times", "fetch the measurements again", file=path) from None
