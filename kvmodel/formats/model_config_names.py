"""The names of a config.json: of model types, of nested parts, and of the fields that say the same thing."""

NESTED = ("text_config", "llm_config", "language_config", "lm_config", "thinker_config")
"""Where a model of several kinds of input keeps the fields of its language model."""

FIELDS = {
    "block_count": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "embedding_length": ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim"),
    "attention.head_count": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "attention.head_count_kv": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "context_length": (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "max_sequence_length",
        "max_seq_len",
        "seq_length",
        "context_length",
    ),
    "head size": ("head_dim", "kv_channels", "attention_head_dim"),
}
"""The fields that hold a value, the usual one first (`find_hparam` in convert_hf_to_gguf.py)."""

GEMMA = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
DEFAULTS = {
    "gemma": {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192},
    "gemma2": GEMMA | {"max_position_embeddings": 8192},
    "gemma3": GEMMA | {"max_position_embeddings": 131_072},
}
"""Fields that a published file may leave out, since the model type's own class sets them (transformers,
configuration_gemma.py, configuration_gemma2.py and configuration_gemma3.py)."""

SAME = (
    "apertus", "arcee", "arctic", "baichuan", "bert", "bitnet", "bloom", "chatglm", "cohere2", "dbrx", "deepseek",
    "dots1", "exaone", "exaone4", "falcon", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "glm4", "gpt2", "gptj",
    "granite", "granitemoe", "internlm2", "jais", "jamba", "lfm2", "llama", "llama4", "mamba", "mamba2", "minicpm",
    "mpt", "nemotron", "nemotron_h", "olmo", "olmo2", "olmoe", "orion", "phi3", "phimoe", "qwen2", "qwen3", "rwkv6",
    "rwkv7", "seed_oss", "smollm3", "stablelm", "starcoder2", "xverse",
)  # fmt: skip
"""Model types that llama.cpp calls by the same name."""

ARCHS = {name: name for name in SAME} | {
    "cohere": "command-r",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "ernie4_5": "ernie4_5",
    "ernie4_5_moe": "ernie4_5-moe",
    "falcon_h1": "falcon-h1",
    "falcon_mamba": "mamba",
    "gemma3_text": "gemma3",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "glm": "chatglm",
    "glm4_moe": "glm4moe",
    "gpt_bigcode": "starcoder",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "granitemoehybrid": "granitehybrid",
    "granitemoeshared": "granitemoe",
    "internlm3": "llama",
    "kimi_k2": "deepseek2",
    "lfm2_moe": "lfm2moe",
    "llama4_text": "llama4",
    "ministral3": "mistral3",
    "mistral": "llama",
    "mixtral": "llama",
    "olmo3": "olmo2",
    "phi": "phi2",
    "phi-msft": "phi2",
    "phi3_v": "phi3",
    "qwen2_5_vl": "qwen2vl",
    "qwen2_5_vl_text": "qwen2vl",
    "qwen2_moe": "qwen2moe",
    "qwen2_vl": "qwen2vl",
    "qwen2_vl_text": "qwen2vl",
    "qwen3_5": "qwen35",
    "qwen3_5_moe": "qwen35moe",
    "qwen3_5_moe_text": "qwen35moe",
    "qwen3_5_text": "qwen35",
    "qwen3_moe": "qwen3moe",
    "qwen3_next": "qwen3next",
    "qwen3_vl": "qwen3vl",
    "qwen3_vl_moe": "qwen3vlmoe",
    "qwen3_vl_moe_text": "qwen3vlmoe",
    "qwen3_vl_text": "qwen3vl",
    "refinedweb": "falcon",
    "refinedwebmodel": "falcon",
    "stablelm_epoch": "stablelm",
}
"""llama.cpp's architecture of each model type."""
