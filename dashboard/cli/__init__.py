"""The verbs of the command line, one file per group; heavy imports wait until a verb runs."""
