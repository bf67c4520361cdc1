"""What is wrong when an installation fails, and what helps, from what pip or uv printed. Standard library only."""

from __future__ import annotations

import errno
import re
import sys
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
KINDS = {
    "disk": r"No space left on device|Disk quota exceeded|File too large|Errno (28|122|27)\b|os error (28|122|27)\b",
    "hashes": r"DO NOT MATCH THE HASHES|Hash mismatch",
    "network": r"connection broken|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|ConnectionError|"
    r"ConnectionReset|name resolution|Network is unreachable|Connection refused|error sending request|dns error|"
    r"Failed to fetch|Could not connect",
    "version": r"requires a different Python|Requires-Python|No matching distribution|No solution found|"
    r"no wheels with a matching",
}
"""Patterns of what pip and uv print, the surest first: after a broken download both also miss a distribution."""
BEFORE_INSTALLING = {"hashes", "network", "version"}
"""Failures before the first package was changed."""
AGAIN = "Then start again: what was downloaded is kept."


def find_kind(printed: str) -> str:
    """Return the kind of failure that pip or uv printed; "" if unknown."""
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, printed)), "")


def explain_installation(kind: str, name: str, environment: Path) -> str:
    """Explain why pip or uv could not install the file ``name``, and what helps."""
    version = ".".join(map(str, sys.version_info[:3]))
    reasons = {
        "disk": f": the disk or quota of {environment.parent} is full. Free about 2 GB, several with CUDA. {AGAIN}",
        "hashes": f": a download is not the file that the lock names. Check your package index or proxy. {AGAIN}",
        "network": f": the package index cannot be reached. Check the network and the proxy settings. {AGAIN}",
        "version": f": the index has no build of a package for Python {version} on this system. Run Foretell with "
        "another Python, 3.11 or newer, or check the index.",
    }
    return f"{name} could not be installed" + reasons.get(
        kind, f". Check the network, free disk space, and the lines above. {AGAIN}"
    )


def explain_environment(error: Exception, environment: Path) -> str:
    """Explain why the virtual environment could not be made, and what helps."""
    printed = getattr(error, "output", None) or b""
    if getattr(error, "errno", None) in FULL or find_kind(printed.decode(errors="replace")) == "disk":
        return (
            f"The disk or quota of {environment.parent} is full. Free about 2 GB (several with CUDA) and start again."
        )
    if isinstance(error, PermissionError):
        return f"{environment.parent} is not writable. Copy Foretell to a folder of your own and start it there."
    return f"No environment could be made ({error}). On Debian: apt install python3-venv."
