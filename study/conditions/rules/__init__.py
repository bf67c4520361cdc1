"""The condition ``rules``: what makes the AI choose a name, in words."""
