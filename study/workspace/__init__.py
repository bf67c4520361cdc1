"""A researcher's folder: files, disk, provenance, seeds."""
