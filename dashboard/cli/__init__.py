"""The command line, one file per group of commands; heavy imports wait until a command runs."""
