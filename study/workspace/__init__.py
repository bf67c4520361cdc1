"""The folder of a researcher: files, disk, provenance, seeds."""
