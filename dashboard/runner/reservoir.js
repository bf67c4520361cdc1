// The training images seen so far, in a fold of test trials. Loaded by studies with blocks only.

import { $, fill, make, pictureUrl, word } from "./dom.js";

let fold = null, round = 0;

// Test trials look alike in all conditions: an explanation leaves no empty place.
export async function offer({ block, index, reservoir }, { net, study, state }) {
  if (block.kind === "test") delete $("trial").dataset.explained;
  fold ??= makeFold();
  fold.open = false;
  fold.hidden = !reservoir;
  if (!reservoir) return;
  if (round !== block.round) fillFold((await net.get("reservoir")).body, study, state.texts);
  round = block.round;
  fold.ontoggle = () => net.log("reservoir", index, { open: fold.open });
}

function makeFold() {
  document.head.append(make("link", { rel: "stylesheet", href: "/runner/reservoir.css" }));
  const made = make("details", { id: "reservoir", className: "reservoir", hidden: true }, make("summary"), make("div", { tabIndex: 0, translate: false }));
  // The space bar, which opens the fold, is no wrong key of a response; those of the names respond.
  made.addEventListener("keydown", (event) => { if (event.key === " ") event.stopPropagation(); });
  $("trial").querySelector("footer").before(made);
  return made;
}

function fillFold(screens, study, texts) {
  const [summary, list] = fold.children;
  summary.textContent = word("reservoir", { number: screens.length });
  list.role = "region";
  list.ariaLabel = summary.textContent;
  list.replaceChildren(...screens.map((screen, i) => describe(screen, i + 1, study, texts)));
}

// One training image, with all that was shown and told then.
function describe({ target, map, left, right, label, feedback }, number, study, texts) {
  const picture = (sha256, alt) => make("img", { src: pictureUrl(study, sha256), alt });
  const shown = [picture(target, word("picture", { number })), ...(map ? [picture(map, word("picture_map", { number }))] : [])];
  const figure = make("figure", {}, make("figcaption", { textContent: feedback ?? label?.text ?? "" }), make("p", {}, ...shown));
  for (const [place, { name, samples }] of Object.entries({ label, left, right }).filter(([, one]) => one?.samples.length)) {
    figure.append(make("small", { textContent: fill(texts.examples_legend, { name }) }),
      make("p", {}, ...samples.map((sha256, i) => picture(sha256, word(`picture_${place}`, { number, sample: i + 1 })))));
  }
  return figure;
}
