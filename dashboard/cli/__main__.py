"""``python -m dashboard.cli``."""

from dashboard.cli.main import main

if __name__ == "__main__":  # a spawned process imports this file too
    main()
