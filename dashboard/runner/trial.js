// One trial on the screen: everything appears on one frame, and the clock starts when it has been painted.

import { $, fill, make, pictureUrl, sleep, uuid, word } from "./dom.js";

const FIXATION = [300, 500]; // ms, drawn uniformly
const EARLIEST = 200; // ms after onset; anything before is an anticipation

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

// Puts a trial on the screen and resolves with the response, or with null if `stop` is aborted first.
export async function present(trial, { study, texts, number, exposures, kept, screen: known, keys, slow, log, stop }) {
  const screen = $("trial");
  screen.dataset.phase = "fixation";
  const fixated = performance.now();
  const fixation = FIXATION[0] + Math.random() * (FIXATION[1] - FIXATION[0]);
  if (trial.options) numberButtons(trial.options);
  const answered = listen(trial, keys, log, stop);
  await Promise.all([lay(trial, number, study, texts), kept]).catch((error) => { answered.cancel(); throw error; });
  await sleep(Math.max(0, fixation - (performance.now() - fixated)));
  await visible();
  screen.dataset.phase = "shown";
  await frame();
  answered.open(await frame());
  const late = countLate(answered.done, 1000 / known.frame_hz);
  const reminder = setTimeout(() => { $("slow").textContent = word("slow"); log("slow", trial.index); }, slow);
  const answer = await answered.done;
  clearTimeout(reminder);
  $("slow").textContent = "";
  screen.dataset.phase = "blank";
  return answer && { ...answer, ...known, trial_index: trial.index, attempt_id: uuid(), dropped_frames: late.frames,
    time_origin_ms: performance.timeOrigin, n_exposures: exposures, resumed: exposures > 1 };
}

// Counts frames that should have been painted between onset and response, but were not.
function countLate(done, interval) {
  const late = { frames: 0 };
  let going = true, last = performance.now();
  done.then(() => { going = false; });
  const next = (now) => {
    if (!document.hidden) late.frames += Math.max(0, Math.round((now - last) / interval) - 1);
    last = now;
    if (going) requestAnimationFrame(next);
  };
  requestAnimationFrame((now) => { last = now; next(now); });
  return late;
}

// Buttons numbered from the left.
export function numberButtons(options) {
  if ($("answers").children.length === options.length) return;
  $("answers").replaceChildren(...options.map((_, i) =>
    make("button", { type: "button", id: i + 1, translate: false }, make("kbd", { textContent: i + 1 }), make("span"))));
}

// Everything in place but hidden, and every image decoded.
async function lay(trial, number, study, texts) {
  const pictures = [put($("target"), trial.target, study, word("picture", { number })), put($("map"), trial.map, study, word("picture_map", { number }))];
  $("asked").textContent = trial.asked ? fill(texts.catch, { name: trial.asked }) : "";
  $("map-legend").textContent = trial.map ? texts.map_legend : "\u00a0";
  $("label").textContent = trial.label?.text ?? "";
  $("label").append(make("small", { textContent: texts.first ?? "" }));
  $("label").hidden = !trial.label;
  $("label-option").hidden = !trial.label?.samples.length;
  (trial.options ?? [trial.left, trial.right]).forEach(({ name }, i) => { $("answers").children[i].querySelector("span").textContent = name; });
  for (const place of ["left", "right", "label"]) {
    const { name, samples } = trial[place] ?? { samples: [] };
    $(`${place}-legend`).textContent = samples.length ? fill(texts.examples_legend, { name }) : "\u00a0";
    const images = samples.map(() => document.createElement("img"));
    $(`${place}-samples`).replaceChildren(...images);
    images.forEach((image, i) => pictures.push(put(image, samples[i], study, word(`picture_${place}`, { number, sample: i + 1 }))));
  }
  // An attention check has no explanation in any condition, and keeps the places of the trials before it.
  if (trial.map || trial.steps || pictures.length > 2) $("trial").dataset.explained = "";
  await Promise.all(pictures);
}

export async function put(image, sha256, study, words) {
  image.hidden = !sha256;
  image.alt = sha256 ? words : "";
  if (!sha256) return image.removeAttribute("src");
  image.src = pictureUrl(study, sha256);
  await image.decode();
}

// Collects the first admissible response. Until open(onset) nothing counts, and early presses are logged.
function listen(trial, keys, log, stop) {
  const abort = new AbortController();
  let onset = Infinity, away = 0, leftAt = null, reminded = false, resolve;
  const done = new Promise((r) => { resolve = r; });
  const options = { signal: abort.signal };
  const end = (answer) => { abort.abort(); resolve(answer); };
  stop.addEventListener("abort", () => end(null), options);
  if (stop.aborted) end(null);

  function take(side, input, event) {
    if ($("trial").hidden) return; // another page lies over it
    if (event.timeStamp < onset + EARLIEST) {
      log("anticipation", trial.index, { side, after_onset_ms: onset === Infinity ? null : event.timeStamp - onset }, event.timeStamp);
      return;
    }
    end({ side, input, onset_ms: onset, event_ms: event.timeStamp, handler_ms: performance.now(),
      rt_ms: event.timeStamp - onset, blur_ms: away });
  }

  addEventListener("keydown", (event) => {
    if ($("trial").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    const side = trial.options ? $("answers").children[digitOf(event) - 1]?.id : sideOf(event, keys);
    if (!side) return void (isTyped(event) && remind());
    event.preventDefault();
    if (!event.repeat) take(side, "key", event);
  }, options);
  // Says which keys there are, once a trial, where another one is pressed.
  function remind() {
    if (reminded) return;
    reminded = true;
    log("other_key", trial.index);
    $("slow").textContent = word("keys", { left: keys.left.toUpperCase(), right: keys.right.toUpperCase() });
  }

  for (const button of $("answers").children) {
    button.addEventListener("click", (event) => take(button.id, inputOf(event), event), options);
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leftAt = performance.now();
    else if (leftAt !== null && onset !== Infinity) away += performance.now() - Math.max(leftAt, onset);
  }, options);

  return { done, open: (at) => { onset = at; }, cancel: () => abort.abort() };
}

// The digit that a key types, or that is printed on it: AZERTY types digits with Shift only.
export const digitOf = ({ key, code }) => Number(key) || Number(/^(?:Digit|Numpad)(\d)$/.exec(code)?.[1]);

// The side of a key: by what it types, or by its place where the layout types no Latin letters (as Cyrillic or Hebrew).
function sideOf({ key, code }, keys) {
  const latin = /^[\x20-\x7e]$/.test(key);
  return ["left", "right"].find((side) => keys[side] === key.toLowerCase() || (!latin && code === `Key${keys[side].toUpperCase()}`));
}

// Whether a key types a character, or would without an input method; Shift, Tab and the arrows do not.
const isTyped = ({ key, code }) => key.length === 1 || key === "Process" || key === "Unidentified" || (key === "Dead" && code.startsWith("Key"));

function inputOf(event) {
  if (event.detail === 0) return "key"; // Enter or Space on the focused button
  return event.pointerType === "touch" ? "touch" : "mouse";
}

// A page in the background is not painted: wait until it is visible.
const visible = () => document.hidden && new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));

// The smallest step of the browser's clock in ms: browsers coarsen it.
export function clockStep(steps = 20) {
  let smallest = Infinity;
  for (let last = performance.now(), seen = 0; seen < steps;) {
    const now = performance.now();
    if (now === last) continue;
    smallest = Math.min(smallest, now - last);
    last = now;
    seen++;
  }
  return smallest;
}

// Refresh rate in Hz, from the median distance of frames.
export async function refreshRate(frames = 15) {
  let last = await frame();
  const distances = [];
  for (let i = 0; i < frames; i++) {
    const now = await frame();
    distances.push(now - last);
    last = now;
  }
  distances.sort((a, b) => a - b);
  return 1000 / Math.max(distances[frames >> 1], 0.1);
}
