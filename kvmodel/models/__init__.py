"""The shape of a model: of a well-known one by its name, of a GGUF file by its header, of a config.json by its text."""

from kvmodel.models.files import from_config, from_gguf, from_gguf_bytes
from kvmodel.models.known import find, known

__all__ = ["find", "from_config", "from_gguf", "from_gguf_bytes", "known"]
