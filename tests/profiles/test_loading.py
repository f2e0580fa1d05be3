"""A user's own TOML files, good and hostile: one sentence with file, field and remedy."""

import pytest

from workbench import profiles
from workbench.errors import InputError, UnknownName, UserError
from workbench.profiles import toml_reading

GOOD = """
label = "my card"
memory_bytes = 48e9
[nominal]
flops_per_s = 1e14
memory_bytes_per_s = { value = 1e12, status = "datasheet", source = "sheet" }
[achievable]
flops_per_s = { fraction = 0.7, status = "inferred", source = "a guess" }
memory_bytes_per_s = { like = "h100-80gb-sxm" }
[sources]
sheet = "the maker's data sheet"
"""


def written(tmp_path, text, name="my.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_users_own_accelerator(tmp_path):
    path = written(tmp_path, GOOD)
    one = profiles.accelerator(path)
    assert one == profiles.accelerator(str(path))
    assert (one.name, one.memory_bytes.status, one.memory_bytes.source) == ("my", "user", str(path))
    assert one.nominal.memory_bytes_per_s.source == "the maker's data sheet"
    assert float(one.achievable.flops_per_s) == pytest.approx(0.7e14)
    assert float(one.achievable.memory_bytes_per_s) == pytest.approx(1e12 * 2858 / 3350)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("memory_bytes = 48e9", "", "field 'memory_bytes': is missing; add memory_bytes"),
        (
            "memory_bytes = 48e9",
            "memory_bytes = -48e9",
            "field 'memory_bytes': is -4.8e.10; it must be finite and more",
        ),
        ("memory_bytes = 48e9", "memory_bytes = 0", "is 0; it must be finite"),
        ("memory_bytes = 48e9", "memory_bytes = nan", "is nan; it must be finite"),
        ("memory_bytes = 48e9", "memory_bytes = inf", "is inf; it must be finite"),
        ("memory_bytes = 48e9", "memory_bytes = true", "is True, not a number"),
        ("memory_bytes = 48e9", 'memory_bytes = "48 GB"', "is '48 GB', not a number"),
        ("memory_bytes = 48e9", "memory_bytes = [48e9]", "not a number"),
        ("memory_bytes = 48e9", "memory_bytes = { status = 'user', source = 'x' }", "has no 'value'"),
        ("memory_bytes = 48e9", "memory_bytes = { value = 48e9, source = 'x' }", "'memory_bytes.status': is missing"),
        (
            "memory_bytes = 48e9",
            "memory_bytes = { value = 48e9, status = 'rumour', source = 'x' }",
            "memory_bytes.status",
        ),
        (
            "memory_bytes = 48e9",
            "memory_bytes = { value = 48, unit = 'GB', status = 'user', source = 'x' }",
            "in bytes",
        ),
        ("memory_bytes = 48e9", "memory_byte = 48e9\nmemory_bytes = 48e9", "'memory_byte': .*or use memory_bytes"),
        ("flops_per_s = 1e14", "flop_per_s = 1e14", "field 'achievable.flops_per_s': has no nominal rate"),
        ("[nominal]", "[[nominal]]", "field 'nominal'"),
        ("[nominal]", "[nominal", "is not valid TOML"),
        ("fraction = 0.7", "fraction = 7", "is the fraction 7; give one between 0 and 1"),
        ('like = "h100-80gb-sxm"', 'like = "h1000"', "no accelerator named 'h1000'"),
        ('like = "h100-80gb-sxm"', 'like = "h100", status = "user"', "holds more than 'like'"),
        ('label = "my card"', "label = 3", "field 'label'"),
    ],
)
def test_hostile_accelerators_get_one_sentence(tmp_path, old, new, message):
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(UserError, match=message) as caught:
        profiles.accelerator(path)
    assert "\n" not in str(caught.value)
    if not isinstance(caught.value, UnknownName):
        assert str(path) in str(caught.value)
        assert caught.value.exit_code == 2


@pytest.mark.parametrize("load", [profiles.accelerator, profiles.model, profiles.cluster])
def test_files_that_are_no_files_get_one_sentence(tmp_path, load):
    cases = {
        tmp_path / "absent.toml": "No such file",
        tmp_path: "is not a file",
        written(tmp_path, "x = 1\n" * 400_000, "large.toml"): "2400000 bytes",
        written(tmp_path, "a = " + "[" * 5000, "deep.toml"): "TOML|nested",
    }
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00label")
    cases[binary] = "UTF-8"
    for path, message in cases.items():
        with pytest.raises(InputError, match=message) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_names_never_reach_outside_the_facts():
    for name in ("../hardware/h100-80gb-sxm", "..", "", ".", "links", "sources", "a\0b"):
        with pytest.raises(UserError):
            profiles.accelerator(name)


CLUSTER = """
label = "mine"
[defaults]
accelerator = "h100-80gb-sxm"
accelerators = 4
nics = 1
nic = "rdma-100g"
[[groups]]
hosts = 2
leaf = "left"
[[groups]]
hosts = 1
leaf = "right"
nic = { like = "rdma-100g", nominal_bytes_per_s = 6.25e9 }
[leaves.left]
uplink = "rdma-400g"
[leaves.right]
"""


def test_a_users_own_cluster(tmp_path):
    one = profiles.cluster(written(tmp_path, CLUSTER))
    assert (one.hosts, one.accelerators, one.uniform) == (3, 12, False)
    assert [float(group.nic.rate("nominal")) for group in one.groups] == [12.5e9, 6.25e9]
    assert one.groups[1].nic.rate("nominal").status == "user"
    assert one.groups[0].nic.rate("nominal").source == "line rate"
    assert [leaf.uplink and float(leaf.uplink.rate("nominal")) for leaf in one.leaves] == [50e9, None]


def test_a_cluster_of_a_users_own_accelerators(tmp_path):
    written(tmp_path, GOOD, "card.toml")
    one = profiles.cluster(written(tmp_path, CLUSTER.replace('"h100-80gb-sxm"', '"card.toml"')))
    assert one.accelerator.label == "my card"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hosts = 2", "hosts = 0", r"field 'groups\[0\].hosts'.*greater than or equal to 1"),
        ("hosts = 2", "", r"field 'groups\[0\].hosts': is missing"),
        ("hosts = 2", "hosts = { value = 2 }", r"groups\[0\].hosts': is no count; write it as"),
        ("hosts = 2", "hosts = 2\nhots = 3", r"groups\[0\].hots': is not a known field; remove it, or use hosts"),
        ('"h100-80gb-sxm"', '"h1000-80gb"', "no accelerator named 'h1000-80gb'"),
        ('"h100-80gb-sxm"', "7", r"groups\[0\].accelerator': is missing; name an accelerator"),
        ('"rdma-100g"', '"rdma-100"', "names the link 'rdma-100', which is unknown; use one of"),
        ('nic = "rdma-100g"', "", r"nics is 1 but nic is absent; give both"),
        ("nominal_bytes_per_s = 6.25e9", "nominal_bytes_per_s = -1", r"groups\[1\].nic.nominal_bytes_per_s': is -1"),
        ("[leaves.right]", "[leaves.wrong]", "leaf 'right', which is not listed; add it"),
        ('uplink = "rdma-400g"', 'uplinks = "rdma-400g"', "leaves.*uplinks.*use uplink"),
        ("[[groups]]\nhosts = 2", "[groups.a]\nhosts = 2", "TOML|groups"),
    ],
)
def test_hostile_clusters_get_one_sentence(tmp_path, old, new, message):
    assert old in CLUSTER
    path = written(tmp_path, CLUSTER.replace(old, new, 1))
    with pytest.raises(UserError, match=message) as caught:
        profiles.cluster(path)
    assert "\n" not in str(caught.value)


MODEL = """
family = "llama"
layers = 2
hidden = 64
intermediate = 128
heads = 4
kv_heads = 2
head_dim = 16
vocab = 1000
max_context = 128
status = "user"
source = "own"
[overrides.me]
weight_bytes = 1e6
[sources]
own = "a toy of mine"
"""


def test_a_users_own_model(tmp_path):
    one = profiles.model(written(tmp_path, MODEL, "toy-v1.5.toml"))
    # By hand: 2 x (64 x (128 + 64) + 3 x 64 x 128 + 2 x 64) + 2 x 64,000 + 64.
    assert one.parameters == 2 * (12_288 + 24_576 + 128) + 128_064
    assert (one.name, one.source) == ("toy-v1.5", "a toy of mine")
    assert float(one.override("me", "weight_bytes")) == 1e6


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("layers = 2", "layers = 2.0", "field 'layers'.*valid integer"),
        ("layers = 2", "layers = -2", "field 'layers'"),
        ("layers = 2", "layers = 2\nlayer = 2", "'layer': is not a known field; remove it, or use layers"),
        ("kv_heads = 2", "kv_heads = 3", "4 heads do not divide among 3 kv_heads; correct one"),
        ('family = "llama"', 'family = "llama"\nweight_dtype = "fp61"', "number format 'fp61'; use one of fp32"),
        ('status = "user"', "", "field 'status': is missing"),
        ('source = "own"', "", "field 'source': is missing"),
        ("[overrides.me]\nweight_bytes = 1e6", "[overrides]\nweight_bytes = 1e6", r"overrides.*write \[alternates"),
        ("weight_bytes = 1e6", "price = 3", "overrides.*has no unit"),
        (
            "[overrides.me]",
            "[experts]\nrouted = 8\nactive = 2\nintermediate = 64\n[overrides.me]",
            "published_parameters",
        ),
    ],
)
def test_hostile_models_get_one_sentence(tmp_path, old, new, message):
    assert old in MODEL
    with pytest.raises(UserError, match=message) as caught:
        profiles.model(written(tmp_path, MODEL.replace(old, new, 1)))
    assert "\n" not in str(caught.value)


def test_an_edited_file_is_read_anew(tmp_path):
    path = written(tmp_path, MODEL)
    assert profiles.model(path).layers == 2
    written(tmp_path, MODEL.replace("layers = 2", "layers = 20"))
    assert profiles.model(path).layers == 20


def test_a_named_profile_reads_its_own_file_only_and_once():
    toml_reading._parsed.cache_clear()
    for _ in range(3):
        profiles.model("opt-66b")
    assert toml_reading._parsed.cache_info().misses == 1


def test_the_local_profile_asks_for_a_measurement(home):
    for load in (profiles.accelerator, profiles.cluster):
        with pytest.raises(UserError, match="run `workbench measure`"):
            load("local")


def test_a_broken_local_profile_says_how_to_mend_it(home):
    path = home / "profiles" / "local.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[accelerator]\n")
    with pytest.raises(InputError, match="run `workbench measure` again"):
        profiles.cluster("local")
