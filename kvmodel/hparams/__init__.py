"""What llama.cpp makes of a model's keys (`llama_model::load_hparams`): heads, windows and states of every layer."""
