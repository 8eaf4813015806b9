"""The caches: one file each, one contract."""
