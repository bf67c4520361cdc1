// A heatmap on the button of each class. Loaded in every condition of studies in which one condition has them.

import { $, make, pictureUrl, word } from "./dom.js";

let styled = false;

// Returns when the images are decoded: they appear with the rest of the trial.
export async function offer({ options }, { study, state: { texts } }) {
  if (!styled) document.head.append(make("link", { rel: "stylesheet", href: "/runner/options.css" }));
  styled = true;
  const images = makeButtons(options.length);
  const legend = $("target").parentElement.querySelector("figcaption");
  legend.textContent = options.some(({ samples }) => samples.length) ? texts.examples_legend : "\u00a0";
  await Promise.all(options.map(({ samples }, i) => place(images[i], samples[0], study)));
}

function makeButtons(number) {
  const answers = $("answers");
  if (answers.querySelectorAll("img").length !== number) {
    $("trial").dataset.options = number;
    answers.replaceChildren(...Array.from({ length: number }, (_, i) => make("button", { type: "button", id: i + 1, translate: false },
      make("figure", {}, make("img")), make("kbd", { textContent: i + 1 }), make("span"))));
  }
  return answers.querySelectorAll("img");
}

// In other conditions, and in attention checks, the place stays empty.
async function place(image, sha256, study) {
  image.hidden = !sha256;
  image.alt = sha256 ? word("picture_map", { number: $("trial").dataset.number }) : "";
  if (!sha256) return image.removeAttribute("src");
  image.src = pictureUrl(study, sha256);
  await image.decode();
}
