// The annotated example: a practice trial as this participant will see it, with numbered parts.

import { make, pictureUrl } from "./dom.js";
import { load } from "./pictures.js";

export async function annotate(figure, screen, study, complain) {
  figure.hidden = !screen;
  if (!screen) return;
  const { target, map, options, left = options[0], right = options.at(-1), label } = screen;
  const samples = { left: label?.samples.length ? label.samples : left.samples, right: right.samples };
  const every = [target, map, ...samples.left, ...samples.right].filter(Boolean);
  await Promise.all(every.map((sha256) => load(study, sha256, complain, "wait")));
  const picture = (sha256) => make("img", { src: pictureUrl(study, sha256), alt: "" });
  const part = (name) => figure.querySelector(`[data-part="${name}"]`);
  for (const [name, image] of Object.entries({ picture: target, map })) part(name).replaceChildren(...(image ? [picture(image)] : []));
  for (const [side, { name }] of Object.entries({ left, right })) {
    part(`${side}-samples`).replaceChildren(...samples[side].map(picture));
    part(`${side}-samples`).hidden = !samples[side].length;
    if (!options) part(side).textContent = name;
  }
  if (options) part("names").replaceChildren(...options.map(({ name }, i) => make("span", { className: "mini-option" }, make("kbd", { textContent: i + 1 }), ` ${name}`)));
  part("label").textContent = label?.text ?? "";
  const given = { picture: target, map, label, samples: samples.left.length };
  for (const element of figure.querySelectorAll("[data-needs]")) element.hidden = !given[element.dataset.needs];
}
