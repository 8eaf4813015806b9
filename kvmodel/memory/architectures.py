"""Architectures that the older versions can load (`LLM_ARCH_NAMES` in llama-arch.cpp)."""

from kvmodel.memory.settings import Rules

_JANUARY = (
    "llama deci falcon grok gpt2 gptj gptneox mpt baichuan starcoder refact bert nomic-bert jina-bert-v2 bloom "
    "stablelm qwen qwen2 qwen2moe qwen2vl phi2 phi3 phimoe plamo codeshell orion internlm2 minicpm minicpm3 gemma "
    "gemma2 starcoder2 mamba xverse command-r cohere2 dbrx olmo olmo2 olmoe openelm arctic deepseek deepseek2 "
    "chatglm bitnet t5 t5encoder jais nemotron exaone rwkv6 rwkv6qwen2 granite granitemoe chameleon "
    "wavtokenizer-dec"
)
_SINCE = "llama4 nomic-bert-moe neo-bert qwen3 qwen3moe gemma3 gemma3n glm4 rwkv7 arwkv7 plm bailingmoe dots1 arcee"

KNOWN = {
    Rules.JANUARY_2025: frozenset(_JANUARY.split()),
    Rules.MID_2025: frozenset(_JANUARY.split() + _SINCE.split()),
}
"""The streams rules have no entry: they follow a moving target, and new architectures keep coming."""
