"""The account for which the researcher's door acts: an address, or an administrator without one."""

from __future__ import annotations

from dataclasses import dataclass

from study.store import audit


@dataclass(frozen=True)
class Account:
    """The account of a logged-in researcher.

    Attributes
    ----------
    address
        E-mail address; None for the shared password, a login link of the server, and the command line.
    is_administrator
        Whether the account may do everything, in every study.
    sees_unassigned
        Whether the account may use studies without members, as every login could before there were members.
    """

    address: str | None
    is_administrator: bool = False
    sees_unassigned: bool = False

    @property
    def name(self) -> str:
        """Name of the account in the audit trail."""
        return self.address or audit.RESEARCHER


ADMINISTRATOR = Account(None, is_administrator=True, sees_unassigned=True)
"""The account of the command line, of the shared password, and of a login link without an address."""


def name_author(actor: str) -> str:
    """Name the author of an act in words."""
    return "an administrator" if actor == audit.RESEARCHER else actor
