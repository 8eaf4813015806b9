"""Tests of the model, the figures, the app and the notebooks."""
