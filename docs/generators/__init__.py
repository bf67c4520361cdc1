"""One module for each generated page; `docs/generate.py` lists them."""
