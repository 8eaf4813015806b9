"""Keys of model files for the tests."""

from tests.gguf_files import LLAMA

WINDOWED = {
    "context_length": 8192,
    "embedding_length": 64,
    "block_count": 12,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.sliding_window": 16,
}

STATE = {"ssm.conv_kernel": 4, "ssm.inner_size": 64, "ssm.state_size": 16}

MLA_KEYS = LLAMA | {
    "attention.head_count": 16,
    "attention.head_count_kv": 1,
    "attention.kv_lora_rank": 512,
    "rope.dimension_count": 64,
    "attention.key_length": 576,
    "attention.value_length": 512,
    "attention.key_length_mla": 192,
    "attention.value_length_mla": 128,
}
