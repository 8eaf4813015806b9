"""Recurrent and hybrid models from their start-up logs alone: layers, sizes of states, and what a log leaves out."""

import re
from dataclasses import replace

import pytest

from kvmodel.formats.memlog import reconcile
from kvmodel.geometry import Geometry
from kvmodel.memory import Rules, Settings, log_lines, plan
from kvmodel.models import find
from tests.memory_cases import ROWS
from tests.sources import ROOT

STARTUP = ROOT / "tests/data/startup"


def text_of(name: str) -> str:
    return (STARTUP / f"{name}.log").read_text(encoding="utf-8")


def only(text: str, *args):
    [found] = reconcile(text, *args)
    return found


@pytest.mark.parametrize(
    ("name", "caches"),
    [
        ("2026-lfm2", [("kv", "48.00"), ("recurrent", "0.16")]),
        ("2026-qwen35", [("kv", "8192.00"), ("recurrent", "149.62")]),
        ("2026-qwen3next", [("kv", "768.00"), ("recurrent", "301.50")]),
    ],
)
def test_a_real_log_of_a_hybrid_is_computed_without_naming_its_model(name, caches):
    found = only(text_of(name))
    assert [(check.name, check.computed.total) for check in found.checks] == caches
    assert found.agrees
    assert found.missing == ()
    assert all(check.buffers_agree is not False for check in found.checks)


@pytest.mark.parametrize(
    ("name", "known"),
    [("2026-lfm2", "LFM2 1.2B"), ("2026-qwen35", "Qwen3.5 27B"), ("2026-qwen3next", "Qwen3-Next 80B-A3B")],
)
def test_a_log_s_model_is_the_known_one(name, known):
    found, same = only(text_of(name)).geometry, find(known)
    assert (found.states, found.heads) == (same.states, same.heads)
    assert (found.n_embd_k_gqa, found.n_embd_v_gqa) == (same.n_embd_k_gqa, same.n_embd_v_gqa)


def test_a_log_s_states_are_the_reported_ones():
    reported = ROWS["m25"]["recurrent"]
    kept = {pair for pair in only(text_of("2026-qwen3next")).geometry.states if any(pair)}
    assert kept == {(reported["n_embd_r"], reported["n_embd_s"])}


def printed(arch: str, **fields: object) -> str:
    lines = [f"print_info: arch = {arch}", *(f"print_info: {name} = {value}" for name, value in fields.items())]
    return "\n".join(lines) + "\n"


def keys(arch: str, **values: object) -> str:
    """The loader's list, a double underscore for a point."""
    named = [("general.architecture", arch)]
    named += [(f"{arch}.{name.replace('__', '.')}", value) for name, value in values.items()]
    return "".join(f"llama_model_loader: - kv {i:3}: {key:>40} u32 = {value}\n" for i, (key, value) in enumerate(named))


STATES = (
    "llama_memory_recurrent: size = {size} MiB ( 1 cells, {n} layers, 1 seqs), R (f32): {r} MiB, S (f32): {s} MiB\n"
)
SSM = {"ssm_d_conv": 4, "ssm_d_state": 16}
JAMBA_HEADS = [8 if il % 8 == 4 else 0 for il in range(32)]
MODELS = {
    # https://github.com/ggml-org/llama.cpp/issues/9170: 3 x 1536 and 16 x 1536 elements in 24 layers
    "mamba": (
        printed("mamba", n_embd=768, n_layer=24, n_head=0, n_head_kv=0, ssm_d_inner=1536, **SSM),
        STATES.format(size="2.67", n=24, r="0.42", s="2.25"),
    ),
    # https://github.com/ggml-org/llama.cpp/pull/5328: 23.75 MiB a sequence
    "mamba 2.8B": (
        printed("mamba", n_embd=2560, n_layer=64, n_head=0, n_head_kv=0, ssm_d_inner=5120, **SSM),
        STATES.format(size="23.75", n=64, r="3.75", s="20.00"),
    ),
    # https://github.com/ggml-org/llama.cpp/issues/18154: a wkv state of 163840 elements; two shifts of 2560
    "rwkv7": (
        keys("rwkv7", block_count=32, embedding_length=2560, wkv__head_size=64)
        + printed("rwkv7", n_embd=2560, n_layer=32, n_head=0, n_head_kv=0, ssm_d_conv=0),
        STATES.format(size="20.62", n=32, r="0.62", s="20.00"),
    ),
    # https://github.com/ggml-org/llama.cpp/pull/7531: 28 layers of 3 x 8192 and 16 x 8192 elements
    "jamba": (
        printed("jamba", n_embd=4096, n_layer=32, n_head=32, n_head_kv=JAMBA_HEADS, ssm_d_inner=8192, **SSM),
        STATES.format(size="16.62", n=32, r="2.62", s="14.00"),
    ),
    # https://github.com/GeniePod/genie-claw/issues/410: attention and a state in each of 24 layers
    "falcon-h1": (
        printed("falcon-h1", n_embd=2048, n_layer=24, n_head=8, n_head_kv=2, n_embd_head_k=128, n_embd_head_v=128)
        + printed("falcon-h1", ssm_d_conv=4, ssm_d_inner=3072, ssm_d_state=256, ssm_n_group=1).partition("\n")[2],
        "llama_kv_cache: size = 768.00 MiB ( 32768 cells, 24 layers, 1/1 seqs), K (f16): 384.00 MiB, V (f16): 384.00 "
        "MiB\n" + STATES.format(size="72.98", n=24, r="0.98", s="72.00"),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_states_are_computed_from_the_printed_fields(name):
    model, sizes = MODELS[name]
    found = only(f"{model}llama_context: n_seq_max = 1\nllama_context: n_ctx = 32768\n{sizes}")
    assert [check.told for check in found.checks if not check.agrees] == []
    assert found.missing == ()


def test_jamba_s_state_layers_are_those_without_heads():
    model, sizes = MODELS["jamba"]
    found = only(f"{model}llama_context: n_ctx = 4096\n{sizes}").geometry
    assert (found.kind, found.recurrent) == ("hybrid", tuple(not count for count in JAMBA_HEADS))
    assert found.head_sizes_k == (4096 // 32,) * 32


def test_granite_s_printed_fields_give_the_states_of_its_config():
    """Fields of Granite 4.0 H Small: https://github.com/ollama/ollama/issues/12982."""
    heads = [8 if il in {5, 15, 25, 35} else 0 for il in range(40)]
    model = printed("granitehybrid", n_embd=4096, n_layer=40, n_head=32, n_head_kv=heads, n_ff=768)
    model += printed("x", ssm_d_conv=4, ssm_d_inner=8192, ssm_d_state=128, ssm_n_group=1).partition("\n")[2]
    # 36 layers of 3 x (8192 + 2 x 128) and of 128 x 8192 elements, four bytes each
    sizes = STATES.format(size="147.48", n=40, r="3.48", s="144.00")
    found = only(f"{model}llama_context: n_ctx = 4096\n{sizes}")
    assert found.agrees
    assert sum(found.geometry.recurrent) == 36


def test_nemotron_s_state_layers_have_neither_heads_nor_a_feed_forward_network():
    model = printed("nemotron_h", n_embd=64, n_layer=4, n_head=4, n_head_kv=[0, 2, 0, 0], n_ff=[0, 0, 128, 0])
    model += printed("x", ssm_d_conv=4, ssm_d_inner=128, ssm_d_state=16, ssm_n_group=2).partition("\n")[2]
    found = only(
        f"{model}llama_context: n_ctx = 256\nllama_kv_cache: size = 1.00 MiB (256 cells, 1 layers, 1/1 seqs),"
        " K (f16): 0.50 MiB, V (f16): 0.50 MiB\n"
    ).geometry
    assert found.recurrent == (True, False, False, True)
    assert found.states[0] == (3 * (128 + 2 * 2 * 16), 16 * 128)


@pytest.mark.parametrize(
    ("arch", "field"),
    [
        ("rwkv7", "wkv.head_size"),
        ("lfm2", "shortconv.l_cache"),
        ("mamba", "ssm.conv_kernel"),
        ("qwen3next", "ssm.conv"),
    ],
)
def test_a_state_whose_size_a_log_does_not_give_is_told_with_the_field(arch, field):
    heads = [0, 2] * 2 if arch == "lfm2" else 2
    model = printed(arch, n_embd=64, n_layer=4, n_head=4, n_head_kv=heads, ssm_d_conv=0)
    found = only(f"{model}llama_context: n_ctx = 256\n{STATES.format(size='9.00', n=4, r='1.00', s='8.00')}")
    [check] = found.checks
    assert (check.computed, check.agrees) == (None, False)
    assert f"The size of a state is not known: {arch}.{field}" in check.told
    assert "it stands in the loader's list of keys, or name the model" in check.told
    assert f"{arch}.{field}" in found.missing[0]


def test_the_attention_of_such_a_hybrid_is_computed_all_the_same():
    kv, states = only(text_of("2026-lfm2").replace("lfm2.shortconv.l_cache", "lfm2.shortconv.cut_off")).checks
    assert (kv.agrees, states.computed) == (True, None)
    assert "lfm2.shortconv.l_cache is 'missing'" in states.told


def test_a_named_model_makes_up_for_what_the_log_lacks():
    text = text_of("2026-lfm2").replace("lfm2.shortconv.l_cache", "lfm2.shortconv.cut_off")
    found = only(text, find("LFM2 1.2B"))
    assert found.agrees
    assert found.missing == ()


@pytest.mark.parametrize(
    ("n_seqs", "n_rs_seq", "size", "r", "s"),
    [(4, 2, "1795.50", "67.50", "1728.00"), (1, 2, "448.88", "16.88", "432.00"), (1, 6, "1047.38", "39.38", "1008.00")],
)
def test_earlier_states_are_named(n_seqs, n_rs_seq, size, r, s):
    """Figures that builds of 2026 print for Qwen3.5 27B and models of its shape with drafts of 2 and 6 tokens."""
    line = (
        f"llama_memory_recurrent: size = {size} MiB (     {n_seqs} cells,  64 layers,  {n_seqs} seqs  {n_rs_seq} "
        f"rs_seq), R (f32):   {r} MiB, S (f32): {s} MiB\n"
    )
    text = re.sub(r"llama_memory_recurrent: size =.*\n", line, text_of("2026-qwen35"))
    text = re.sub(r".*RS buffer size.*\n", "", text).replace("n_seq_max     = 1", f"n_seq_max     = {n_seqs}")
    check = only(text).checks[-1]
    assert [term.name for term in check.terms] == ["earlier states"]
    assert f"{n_rs_seq} earlier states beside its own (rs_seq), {n_rs_seq + 1} times the size" in check.told


def test_the_sequences_of_a_recurrent_cache_follow_from_its_size():
    shape = Geometry(3, arch="mamba", recurrent_layers=True, n_embd_r=96 << 10, n_embd_s=512 << 10)
    settings = Settings(256, n_seq_max=5, rules=Rules.JANUARY_2025)
    lines = [line for line in log_lines(plan(shape, settings)) if "n_seq_max" not in line and "kv_size" not in line]
    [check] = only("\n".join(lines), shape, replace(settings, n_seq_max=1)).checks
    assert [term.name for term in check.terms] == ["slots"]
    assert "States of 5 sequences are this large; 1 was assumed" in check.told


def test_full_attention_layers_are_as_often_as_the_loader_says():
    text = text_of("2026-qwen35").replace(
        "full_attention_interval u32              = 4", "full_attention_interval u32 = 8"
    )
    assert sum(only(text).geometry.recurrent) == 56


def test_layers_without_heads_of_an_unknown_architecture_keep_a_state_if_the_log_speaks_of_one():
    model = printed("newcomer", n_embd=64, n_layer=2, n_head=4, n_head_kv=[2, 0], ssm_d_inner=128, **SSM)
    sizes = STATES.format(size="0.01", n=2, r="0.00", s="0.01")
    found = only(f"{model}llama_context: n_ctx = 256\n{sizes}")
    assert found.geometry.recurrent == (False, True)
    assert found.agrees
