"""An exact, inspectable model of llama.cpp KV caches."""
