"""Speeds, printed by hand and asserted nowhere."""
