"""What a popover holds follows its button for the keyboard, too, and the menu of a narrow window closes after a choice.

Streamlit draws an open popover after everything else of the page and leaves the focus on the button: Tab would visit
the rest of the page first, and scroll the popover away. It closes the menu of pages on telephones, by their name, and
leaves it open over the page in a narrow or enlarged window. And it leaves the page where it is when the button "Next"
opens another section of a study, whose beginning is out of sight then.
"""

from __future__ import annotations

import streamlit as st

_SCRIPT = """<script>
if (!window.foretellPopovers) {
  window.foretellPopovers = true;
  const enter = (tries) => {
    const first = document.querySelector("[data-testid=stPopoverBody]")
      ?.querySelector("button:enabled, a[href], input:enabled, textarea:enabled, [tabindex='0']");
    if (first) first.focus();
    else if (tries) setTimeout(() => enter(tries - 1), 50);
  };
  document.addEventListener("click", (event) => { // a click without a pointer comes from a key
    if (event.detail === 0 && event.target.closest?.("[data-testid=stPopover] button")) enter(40);
    if (event.target.closest?.(".st-key-design_next button")) { // the next section begins at its top
      document.querySelector("[data-testid=stMain]").scrollTo(0, 0);
      const section = document.querySelector(".st-key-design_step [aria-checked=true]");
      if (event.detail === 0) section?.focus({ preventScroll: true });
    }
    if (innerWidth <= 768 && event.target.closest?.("[data-testid=stSidebarNavLink]"))
      setTimeout(() => document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click(), 300);
  }, true);
}
</script>"""


def follow_keyboard() -> None:
    """Move the focus into a popover that a key has opened, and close the menu of a narrow window."""
    st.html(_SCRIPT, unsafe_allow_javascript=True)
