"""The tables of a collection: responses, participants, outcomes and how far they came."""
