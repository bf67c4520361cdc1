// One trial on the screen: everything appears on one frame, and the clock starts when it has been painted.

import { $, pictureUrl, uuid } from "./dom.js";

const FIXATION = [300, 500]; // ms, drawn uniformly
const EARLIEST = 200; // ms after onset; anything before is an anticipation
const KEYS = { f: "left", j: "right" };

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Puts a trial on the screen and resolves with the answer, or with null if `stop` is aborted before.
export async function present(trial, { study, texts, exposures, hz, log, stop }) {
  const screen = $("trial");
  screen.dataset.phase = "fixation";
  const fixated = performance.now();
  const fixation = FIXATION[0] + Math.random() * (FIXATION[1] - FIXATION[0]);
  await lay(trial, study, texts);
  const answered = listen(trial, log, stop);
  await sleep(Math.max(0, fixation - (performance.now() - fixated)));
  await visible();
  screen.dataset.phase = "shown";
  await frame();
  answered.open(await frame());
  const answer = await answered.done;
  screen.dataset.phase = "blank";
  return answer && { ...answer, trial_index: trial.index, attempt_id: uuid(), frame_hz: hz,
    time_origin_ms: performance.timeOrigin, n_exposures: exposures, resumed: exposures > 1 };
}

// Everything in place but hidden, and every picture decoded.
async function lay(trial, study, texts) {
  const number = `picture ${trial.index + 1}`;
  const pictures = [put($("target"), trial.target, study, number), put($("map"), trial.map, study, `${number} with map`)];
  $("map-legend").textContent = trial.map ? texts.map_legend : "\u00a0";
  for (const side of ["left", "right"]) {
    const { name, samples } = trial[side];
    $(side).querySelector("span").textContent = name;
    $(`${side}-legend`).textContent = samples.length ? texts.examples_legend.replace("{name}", name) : "\u00a0";
    const images = samples.map(() => document.createElement("img"));
    $(`${side}-samples`).replaceChildren(...images);
    images.forEach((image, i) => pictures.push(put(image, samples[i], study, `${number}, ${side} ${i + 1}`)));
  }
  await Promise.all(pictures);
}

async function put(image, sha256, study, words) {
  image.hidden = !sha256;
  image.alt = sha256 ? words : "";
  if (!sha256) return image.removeAttribute("src");
  image.src = pictureUrl(study, sha256);
  await image.decode();
}

// Collects the first admissible answer. Until open(onset) nothing counts, and early presses are logged.
function listen(trial, log, stop) {
  const abort = new AbortController();
  let onset = Infinity, away = 0, leftAt = null, resolve;
  const done = new Promise((r) => { resolve = r; });
  const options = { signal: abort.signal };
  const end = (answer) => { abort.abort(); resolve(answer); };
  stop.addEventListener("abort", () => end(null), options);
  if (stop.aborted) end(null);

  function take(side, input, event) {
    if (event.timeStamp < onset + EARLIEST) {
      log("anticipation", trial.index, { side, after_onset_ms: onset === Infinity ? null : event.timeStamp - onset }, event.timeStamp);
      return;
    }
    end({ side, input, onset_ms: onset, event_ms: event.timeStamp, handler_ms: performance.now(),
      rt_ms: event.timeStamp - onset, blur_ms: away });
  }

  addEventListener("keydown", (event) => {
    const side = KEYS[event.key.toLowerCase()];
    if (!side || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (!event.repeat) take(side, "key", event);
  }, options);
  for (const button of $("answers").children) {
    button.addEventListener("click", (event) => take(button.dataset.side, inputOf(event), event), options);
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leftAt = performance.now();
    else if (leftAt !== null && onset !== Infinity) away += performance.now() - Math.max(leftAt, onset);
  }, options);

  return { done, open: (at) => { onset = at; } };
}

function inputOf(event) {
  if (event.detail === 0) return "key"; // Enter or Space on the focused button
  return event.pointerType === "touch" ? "touch" : "mouse";
}

// A page in the background is not painted: wait until somebody looks at it.
function visible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
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
