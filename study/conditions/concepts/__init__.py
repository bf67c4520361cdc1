"""The condition ``concepts`` and its charts."""
