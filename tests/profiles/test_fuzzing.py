"""Whatever stands in a file, it is used or refused in one sentence: nothing else ever comes out."""

import copy
import json
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.errors import UserError
from workbench.paths import facts_folder
from workbench.profiles import accelerator, cluster, model
from workbench.profiles.toml_writing import toml_text

odd = (
    st.sampled_from(
        [0, -1, 1e308, float("inf"), float("nan"), True, "", "h100", "rdma-400g", "../x", "x/y.toml", 2**70]
    )
    | st.text(max_size=8)
    | st.integers(-5, 2**40)
    | st.lists(st.integers(0, 9), max_size=2)
    | st.dictionaries(
        st.sampled_from(["value", "status", "source", "unit", "like", "fraction", "x"]), st.just(1), max_size=3
    )
)


def read(folder: str, name: str) -> dict:
    return tomllib.loads((facts_folder() / folder / f"{name}.toml").read_text(encoding="utf-8"))


FILES = {
    accelerator: [read("hardware", "a100-80gb-mig-3g.40gb"), read("hardware", "h800-80gb-sxm")],
    cluster: [read("clusters", "blitzscale-a"), read("clusters", "server-chains-testbed")],
    model: [read("models", "llama-2-7b"), read("models", "deepseek-v3")],
}
CONFIG = {
    "model_type": "falcon",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_hidden_layers": 4,
    "vocab_size": 1000,
    "num_kv_heads": 2,
    "new_decoder_architecture": True,
    "torch_dtype": "bfloat16",
    "intermediate_size": 2048,
    "tie_word_embeddings": False,
}


def damage(data, tree: dict) -> dict:
    """Replace, drop or add one thing somewhere in a tree of tables."""
    tree = copy.deepcopy(tree)
    here = tree
    while True:
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else list(range(len(here)))))
        inside = here[key]
        if isinstance(inside, dict | list) and inside and data.draw(st.booleans()):
            here = inside
            continue
        what = data.draw(st.sampled_from(["replace", "drop", "add"]))
        if what == "drop":
            del here[key]
        elif what == "add" and isinstance(here, dict):
            here[data.draw(st.text(min_size=1, max_size=6).filter(lambda text: "\r" not in text))] = data.draw(odd)
        else:
            here[key] = data.draw(odd)
        return tree


def written(tree: dict) -> str:
    """The tree as one TOML file: what is no table at the first level stands in front."""
    plain = {key: value for key, value in tree.items() if not isinstance(value, dict)}
    head = toml_text({"x": plain}).partition("\n")[2]
    return head + toml_text({key: value for key, value in tree.items() if isinstance(value, dict)})


def used_or_refused(call) -> bool:
    """Whether a call gives something true, or fails with one sentence that the user can act on."""
    try:
        return bool(call())
    except UserError as error:
        return "\n" not in str(error)


@pytest.mark.parametrize("load", FILES, ids=lambda load: load.__name__)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_files_are_used_or_refused(load, tmp_path, data):
    path = tmp_path / "damaged.toml"
    path.write_text(written(damage(data, data.draw(st.sampled_from(FILES[load])))), encoding="utf-8")
    assert used_or_refused(lambda: load(path).sources(alternates=True))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), family=st.sampled_from(["falcon", "llama", "qwen3", "opt", "bloom", "gpt_neox"]))
def test_damaged_configs_are_used_or_refused(tmp_path, data, family):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(damage(data, CONFIG | {"model_type": family, "ffn_dim": 2048})), encoding="utf-8")
    assert used_or_refused(lambda: model(path).parameters > 0)
