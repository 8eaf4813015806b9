"""Tests in a real browser: the app as a person uses it."""
