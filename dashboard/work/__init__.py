"""What the pages ask the pool for, each piece under the key of all it depends on: one file a page or view."""
