"""The mixture of simulated participants as it is written on the command line."""

from __future__ import annotations

from core.errors import ForetellError

MIXTURE = "belief_projector=0.4,map_reader=0.5,guesser=0.1"


def parse_mixture(text: str) -> dict[str, float]:
    """Parse ``"a=0.5,b=0.5"`` into weights; raise `ForetellError` for a text of another form."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    try:
        return {name.strip(): float(weight) for name, _, weight in pairs}
    except ValueError:
        raise ForetellError(f"--mixture {text!r} is not of the form name=weight,name=weight.") from None
