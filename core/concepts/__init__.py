"""Why, in human concepts: what pictures have in common, as a direction in a layer, and what it does to the answer."""
