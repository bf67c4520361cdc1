"""One participant takes part: her plan, her state, her answers, her receipt."""
