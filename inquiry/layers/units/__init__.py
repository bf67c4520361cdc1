"""Questions about single units and channels."""
