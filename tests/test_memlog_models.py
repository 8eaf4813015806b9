"""Start-up logs in which it takes a second look to tell the model: drafts beside targets, windows without a line."""

import re

import pytest

from kvmodel.formats.memlog import reconcile
from kvmodel.formats.memlog_lines import read_contexts
from kvmodel.models import find
from tests.sources import ROOT

STARTUP = ROOT / "tests/data/startup"
GEMMA4 = (STARTUP / "2026-gemma4-e2b.log").read_text(encoding="utf-8")


def without(pattern: str, text: str = GEMMA4) -> str:
    return "\n".join(line for line in text.splitlines() if not re.search(pattern, line))


def test_a_context_is_that_of_the_target_though_its_draft_was_loaded_last():
    [found] = reconcile(GEMMA4)
    assert (found.geometry.arch, found.geometry.n_layer) == ("gemma4", 35)
    assert [(check.name, check.computed.total) for check in found.checks] == [("base", "12.00"), ("swa", "24.00")]
    assert found.agrees
    assert found.settings.swa_full


@pytest.mark.parametrize(
    "left_out",
    ["assigned to device", "assigned to device|sliding_window_pattern", "assigned to device|n_embd_._gqa"],
)
def test_windows_follow_from_what_else_is_said_of_the_layers(left_out):
    """With 15 layers of their own, groups of 4 and of 5 count the same: rows' widths or the file's list decide."""
    [found] = reconcile(without(left_out))
    assert found.geometry.windows == tuple(il % 5 != 4 for il in range(35))


def test_a_log_s_shape_is_the_known_model_s():
    [found] = reconcile(GEMMA4)
    known = find("Gemma 4 E2B")
    for name in ("n_embd_k_gqa", "n_embd_v_gqa", "windows", "n_swa", "owns_kv", "n_ctx_train"):
        assert getattr(found.geometry, name) == getattr(known, name), name


def test_counts_that_no_group_of_layers_has_leave_it_without_windows():
    text = without("assigned to device").replace("  12 layers", "   5 layers")
    [found] = reconcile(text)
    assert not any(found.geometry.windows)
    assert [check.agrees for check in found.checks] == [False, False]


TWO = """\
print_info: arch = llama
print_info: n_embd = 512
print_info: n_layer = 8
print_info: n_head = 8
print_info: n_head_kv = 8
print_info: arch = llama
print_info: n_embd = 256
print_info: n_layer = 2
print_info: n_head = 4
print_info: n_head_kv = 4
llama_context: n_ctx = 256
llama_kv_cache_unified: size = 4.00 MiB ( 256 cells,   8 layers,  1 seqs), K (f16): 2.00 MiB, V (f16): 2.00 MiB
llama_context: n_ctx = 256
llama_kv_cache_unified: size = 0.50 MiB ( 256 cells,   2 layers,  1 seqs), K (f16): 0.25 MiB, V (f16): 0.25 MiB
"""


def test_both_models_loaded_before_both_contexts():
    """256 cells of 512 and of 256 elements, K and V in two bytes each, in 8 and in 2 layers."""
    found = reconcile(TWO)
    assert [each.geometry.n_layer for each in found] == [8, 2]
    assert all(each.agrees for each in found)


def test_the_older_line_counts_all_layers_of_the_model():
    text = re.sub(
        r"llama_kv_cache_unified: size.*8 layers.*",
        "llama_kv_cache_init: kv_size = 256, offload = 1, type_k = "
        "'f16', type_v = 'f16', n_layer = 8, can_shift = 1\nllama_init_from_model: KV self size = 4.00 MiB",
        TWO,
    )
    assert [context.model["n_layer"] for context in read_contexts(text)] == ["8", "2"]


def test_layers_that_no_model_has_leave_the_last_one():
    text = TWO.replace("  8 layers", " 99 layers")
    assert [context.model["n_layer"] for context in read_contexts(text)] == ["2", "2"]


def test_the_recurrent_cache_of_may_2025_goes_by_a_name_of_its_own():
    text = """\
print_info: arch = mamba
print_info: n_embd = 768
print_info: n_layer = 24
print_info: ssm_d_conv = 4
print_info: ssm_d_inner = 1536
print_info: ssm_d_state = 16
llama_context: n_seq_max = 2
llama_context: n_ctx = 512
llama_context: causal_attn = 1
llama_kv_cache_recurrent: kv_size = 2, n_seq_max = 2, type_k = 'f32', type_v = 'f32', n_layer = 24
llama_kv_cache_recurrent:        CPU KV buffer size =     5.34 MiB
llama_kv_cache_recurrent: KV self size  =    5.34 MiB, K (f32):    0.84 MiB, V (f32):    4.50 MiB
"""
    [found] = reconcile(text)
    [check] = found.checks
    assert (check.name, check.computed.total, check.agrees, check.buffers_agree) == ("recurrent", "5.34", True, True)
