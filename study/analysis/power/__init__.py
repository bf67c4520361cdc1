"""Power: simulated studies, and the effects that they assume."""
