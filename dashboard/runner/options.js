// A heatmap on the button of each class. Loaded in every condition of studies in which one condition has them.

import { $, make, word } from "./dom.js";
import { numberButtons, put } from "./trial.js";

let styled = false;

// Returns when the images are decoded: they appear with the rest of the trial. In other conditions, and in attention checks, their
// places stay empty.
export async function offer({ options }, { study, state: { texts } }) {
  if (!styled) document.head.append(make("link", { rel: "stylesheet", href: "/runner/options.css" }));
  styled = true;
  numberButtons(options);
  const { dataset } = $("trial");
  dataset.options = options.length;
  const legend = $("target").parentElement.querySelector("figcaption");
  legend.textContent = options.some(({ samples }) => samples.length) ? texts.examples_legend : "\u00a0";
  const words = word("picture_map", { number: dataset.number });
  await Promise.all(options.map(({ samples }, i) => put(imageOn($("answers").children[i]), samples[0], study, words)));
}

function imageOn(button) {
  if (!button.querySelector("img")) button.prepend(make("figure", {}, make("img")));
  return button.querySelector("img");
}
