"""One participant takes part: their plan, their state, their responses, their receipt."""
