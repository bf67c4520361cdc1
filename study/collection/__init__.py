"""A collection as the researcher has it: open it, watch it, look as planned, export it, settle it."""
