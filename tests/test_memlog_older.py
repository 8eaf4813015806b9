"""Start-up logs of 2023 and early 2024 computed again: what they leave out follows from the rules of their time."""

import re

import pytest

from kvmodel.formats.memlog import reconcile
from kvmodel.formats.memlog_lines import read_contexts
from kvmodel.formats.memlog_per_state import PER_STATE
from kvmodel.memory import Settings
from kvmodel.models import find
from tests.sources import ROOT

STARTUP = ROOT / "tests/data/startup"


def told(name_or_text: str, *args):
    text = name_or_text if "\n" in name_or_text else (STARTUP / f"{name_or_text}.log").read_text(encoding="utf-8")
    [found] = reconcile(text, *args)
    return found


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("2023-04-f16", [("state", "1026.00"), ("kv", "256.00")]),
        ("2023-04-f32-30B", [("state", "6248.00"), ("kv", "1560.00")]),
        ("2023-08-gguf", [("state", "400.00"), ("kv", "400.00")]),
    ],
)
def test_every_memory_line_of_a_log_of_2023_is_computed_again(name, lines):
    found = told(name)
    assert [(check.name, check.printed.total) for check in found.checks] == lines
    assert [check.computed.total for check in found.checks] == [total for _, total in lines]
    assert found.agrees
    assert found.missing == ()


def test_the_first_logs_give_cells_of_all_layers_and_no_type():
    found = told("2023-03-f32")
    assert (found.settings.n_ctx, found.geometry.n_embd_k_gqa) == (16384 // 32, (4096,) * 32)
    [check] = found.checks
    assert (check.printed.total, check.computed.total, check.agrees) == ("512.00", "256.00", False)
    assert [term.name for term in check.terms] == ["types"]
    assert "K and V of f32 are this large" in check.told


def test_n_mem_stands_in_for_n_ctx():
    text = (STARTUP / "2023-03-f32.log").read_text(encoding="utf-8").replace("n_ctx   = 512\n", "\n")
    assert told(text).settings.n_ctx == 512


def test_twice_the_table_s_figure_tells_f32():
    found = told("2023-04-f32-30B")
    assert (found.settings.type_k, found.settings.type_v) == ("f32", "f32")
    assert found.checks[0].told == (
        "6248.00 MiB as computed: that version's fixed figure for 60 layers and 2,048 cells, twice as they are f32, "
        "whatever n_ctx is."
    )


@pytest.mark.parametrize(("n_layer", "n_embd"), [(26, 3200), (32, 4096), (40, 5120), (60, 6656), (80, 8192)])
def test_the_table_s_figures_are_those_of_2048_cells_and_a_margin(n_layer, n_embd):
    exact = 2 * n_embd * 2048 * n_layer * 2 / (1 << 20)
    assert exact <= PER_STATE[n_layer] <= exact * 1.05


def test_a_figure_that_is_in_no_table_is_told():
    text = (STARTUP / "2023-04-f16.log").read_text(encoding="utf-8").replace("1026.00", "1027.00")
    state = told(text).checks[0]
    assert (state.agrees, state.explained) == (False, False)
    assert state.told.startswith("1027.00 MiB printed, 256.00 MiB computed. It is neither")


GROUPED = """\
llama_model_load_internal: format     = ggjt v3 (latest)
llama_model_load_internal: n_vocab    = 32000
llama_model_load_internal: n_ctx      = 4096
llama_model_load_internal: n_embd     = 8192
llama_model_load_internal: n_mult     = 4096
llama_model_load_internal: n_head     = 64
{heads}llama_model_load_internal: n_layer    = 80
llama_model_load_internal: n_rot      = 128
llama_model_load_internal: n_gqa      = 8
llama_model_load_internal: model size = 70B
llama_model_load_internal: mem required  = 22944.36 MB (+ 1280.00 MB per state)
llama_new_context_with_model: kv self size  = 1280.00 MB
"""


@pytest.mark.parametrize("heads", ["", "llama_model_load_internal: n_head_kv  = 8\n"])
def test_grouped_heads_follow_from_n_gqa(heads):
    found = told(GROUPED.format(heads=heads))
    assert found.geometry.heads == (8,) * 80
    assert [check.told for check in found.checks] == ["1280.00 MiB as computed."] * 2


def test_a_model_of_32_grouped_heads_is_the_known_one():
    """Mistral 7B: https://github.com/ggml-org/llama.cpp/issues/4113 has 64.00 MiB for n_ctx 512."""
    text = """\
llm_load_print_meta: format           = GGUF V2 (latest)
llm_load_print_meta: arch             = llama
llm_load_print_meta: n_ctx_train      = 32768
llm_load_print_meta: n_embd           = 4096
llm_load_print_meta: n_head           = 32
llm_load_print_meta: n_head_kv        = 8
llm_load_print_meta: n_layer          = 32
llm_load_print_meta: n_rot            = 128
llm_load_print_meta: n_gqa            = 4
llama_new_context_with_model: n_ctx      = 512
llama_new_context_with_model: kv self size  =   64.00 MiB
"""
    found = told(text)
    assert found.agrees
    assert found.geometry.n_embd_k_gqa == find("Mistral 7B").n_embd_k_gqa


HALVES = """\
llm_load_print_meta: arch             = llama
llm_load_print_meta: n_embd           = 3200
llm_load_print_meta: n_head           = 32
llm_load_print_meta: n_head_kv        = 32
llm_load_print_meta: n_layer          = 26
llama_new_context_with_model: n_ctx      = 512
llama_kv_cache_init: VRAM kv self = {vram} MB
llama_new_context_with_model: KV self size  =  162.50 MiB, K (f16):   81.25 MiB, V (f16):   81.25 MiB
"""


@pytest.mark.parametrize("vram", ["162.50", "81.25", "62.50", "3.12", "0.00"])
def test_what_is_on_a_gpu_is_whole_layers(vram):
    """3200 elements of f16 in 512 cells are 3.125 MiB, 26 layers of K or V 81.25 MiB."""
    [check] = told(HALVES.format(vram=vram)).checks
    assert (check.agrees, check.buffers_agree, check.told) == (True, True, "162.50 MiB as computed.")


def test_another_share_on_a_gpu_is_told():
    [check] = told(HALVES.format(vram="99.00")).checks
    assert (check.agrees, check.buffers_agree) == (True, False)
    assert check.told.endswith("Of it 99.00 MiB are on a GPU, which is not the size of whole layers.")


def test_versions_that_do_not_pad_are_named():
    """100 cells of 32 layers of 4096 elements, K and V, two bytes each: 50 MiB; padded to 128 they would be 64."""
    text = (STARTUP / "2023-04-f16.log").read_text(encoding="utf-8")
    text = text.replace("n_ctx   = 512", "n_ctx   = 100").replace("=  256.00 MB", "=   50.00 MB")
    check = told(text).checks[1]
    assert [term.name for term in check.terms] == ["padding"]
    assert "The cache has 100 cells, not 128" in check.told


def test_a_decimal_comma_is_a_point():
    text = re.sub(r"(\d)\.(\d\d MB)", r"\1,\2", (STARTUP / "2023-04-f16.log").read_text(encoding="utf-8"))
    assert [check.printed.total for check in told(text).checks] == ["1026.00", "256.00"]
    assert told(text).agrees


def test_models_that_follow_each_other_are_told_apart():
    names = ("2023-03-f32", "2023-04-f16", "2023-04-f32-30B", "2023-08-gguf", "2023-04-f16")
    text = "".join((STARTUP / f"{name}.log").read_text(encoding="utf-8") for name in names)
    assert [context.model["n_layer"] for context in read_contexts(text)] == ["32", "32", "60", "40", "32"]


def test_heads_that_a_log_does_not_give_are_missed():
    text = (
        "llama_model_load: n_layer = 32\nllama_model_load: n_ctx = 512\nllama_init_from_file: kv self size = 9.00 MB\n"
    )
    found = told(text)
    assert (found.geometry, found.checks[0].computed) == (None, None)
    assert found.missing == ("The log does not describe the model: n_head_kv is None; allowed: a line that says it.",)


def test_a_named_model_explains_a_log_without_one():
    [check] = told("llama_init_from_file: kv self size  = 4096.00 MB\n", find("Llama 7B"), Settings(8192)).checks
    assert check.agrees


def test_head_sizes_that_nothing_leads_to_are_missed():
    text = (STARTUP / "2023-04-f16.log").read_text(encoding="utf-8").replace("n_embd  = 4096", "")
    found = told(text)
    assert (found.geometry, found.plan) == (None, None)
    assert found.missing == (
        "The log does not describe the model: n_embd_head_k is None; allowed: a line that says it, or n_embd.",
    )
