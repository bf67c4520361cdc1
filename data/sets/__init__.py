"""Image sets: one file each, registered in ``data.SETS``."""
