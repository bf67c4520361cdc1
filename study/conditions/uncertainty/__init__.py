"""The condition ``uncertainty`` and its gauge."""
