"""``python -m foretell``: the command ``foretell`` of this environment's Python."""

from dashboard.cli.main import main

if __name__ == "__main__":
    main()
