// Two images to choose from, below the references of a unit. Loaded in every condition of studies about units.

import { $, make } from "./dom.js";

let styled = false;

export async function offer({ target, asked }, { state: { texts } }) {
  if (!styled) prepare();
  styled = true;
  $("trial").dataset.units = target || asked ? "" : "alone";
  $("target").parentElement.querySelector("figcaption").textContent = target ? texts.target_legend : "\u00a0";
}

// An image is chosen by a click on it, too.
function prepare() {
  document.head.append(make("link", { rel: "stylesheet", href: "/runner/units.css" }));
  for (const side of ["left", "right"]) {
    $(`${side}-samples`).addEventListener("click", ({ pointerType }) => {
      $(side).dispatchEvent(new PointerEvent("click", { detail: 1, pointerType }));
    });
  }
}
