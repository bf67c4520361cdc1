// The images of the next trials, loaded and decoded before they are needed.

import { $, clicked, pictureUrl, show, sleep, word } from "./dom.js";

const TRIES = 3; // to load an image
const AT_ONCE = 6; // images loaded at the same time
let loaded = new Map();

// All that the server lists: up to the next break or step; earlier images are released. A pause returns to `page`.
export async function preload(net, study, complain, page) {
  const names = (await net.get("preload")).body;
  loaded = new Map([...loaded].filter(([sha256]) => names.includes(sha256)));
  const queue = names.filter((sha256) => !loaded.has(sha256));
  const total = queue.length;
  const report = () => {
    const number = total - queue.length;
    $("loading").value = total ? number / total : 1;
    $("loading-text").textContent = queue.length ? word("loading", { number, total }) : word("loaded");
  };
  report();
  const worker = async () => {
    for (let sha256 = queue.pop(); sha256; sha256 = queue.pop()) {
      await load(study, sha256, complain, page);
      report();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

// Shows `page` again after a pause.
export async function load(study, sha256, complain, page, tries = TRIES) {
  const image = new Image();
  image.src = pictureUrl(study, sha256);
  try {
    await image.decode();
    loaded.set(sha256, image);
  } catch {
    if (tries <= 1) {
      await pause(complain);
      show(page);
      tries = TRIES + 1;
    }
    await sleep(500);
    await load(study, sha256, complain, page, tries - 1);
  }
}

let pausing = null;

// One pause for all images that failed together: no trial is shown with a missing one.
export function pause(complain) {
  pausing ??= (async () => { complain(word("no_pictures"), true); await clicked($("again")); })().finally(() => { pausing = null; });
  return pausing;
}
