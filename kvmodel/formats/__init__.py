"""Readers and writers of what llama.cpp itself writes."""
