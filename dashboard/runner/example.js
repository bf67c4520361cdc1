// The annotated example: a practice trial as this participant will see it, with numbered parts.

import { make, pictureUrl } from "./dom.js";
import { load } from "./pictures.js";

export async function annotate(figure, screen, study, complain) {
  figure.hidden = !screen;
  if (!screen) return;
  const { target, map, left, right } = screen;
  const every = [target, map, ...left.samples, ...right.samples].filter(Boolean);
  await Promise.all(every.map((sha256) => load(study, sha256, complain, "wait")));
  const picture = (sha256) => make("img", { src: pictureUrl(study, sha256), alt: "" });
  const part = (name) => figure.querySelector(`[data-part="${name}"]`);
  part("picture").replaceChildren(picture(target));
  part("map").replaceChildren(...(map ? [picture(map)] : []));
  for (const [side, { name, samples }] of Object.entries({ left, right })) {
    part(`${side}-samples`).replaceChildren(...samples.map(picture));
    part(side).textContent = name;
  }
  for (const element of figure.querySelectorAll("[data-needs]")) {
    element.hidden = element.dataset.needs === "map" ? !map : !left.samples.length;
  }
}
