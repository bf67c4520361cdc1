// The participant's page. The server knows where the person is; this page shows it and sends what is answered.

import { $, clicked, pictureUrl, prose, show, title } from "./dom.js";
import { Net } from "./net.js";
import { present, refreshRate } from "./trial.js";

const READING_TIME = 2000; // ms before the instructions can be left
const TRIES = 3; // to load a picture
const AT_ONCE = 6; // pictures loaded side by side
const SAVED = { saved: "Saved", saving: "Saving…", offline: "Offline: will be sent as soon as possible", again: "Continuing where you were" };

const study = decodeURIComponent(location.pathname.split("/")[2]);
const net = new Net(saveIndicator);
const loaded = new Map();
let hz = null;

const PAGES = {
  consent: consentPage, instructions: instructionsPage, practice: trialPages, main: trialPages, debrief: finishPage,
  done: donePage, declined: endPage, full: endPage,
};

async function main() {
  watch();
  net.token = location.hash.slice(1);
  if (!net.token && !(await begin())) return;
  await net.replay();
  let reply = await net.get("state");
  while (reply) {
    if (reply.status >= 400 && !reply.body.stage) return complain(reply.body.error);
    document.title = reply.body.title;
    document.documentElement.lang = reply.body.language;
    $("preview").hidden = !reply.body.preview;
    reply = await PAGES[reply.body.stage](reply.body);
  }
}

// Ids and options of the link are used once and leave the address bar at once.
async function begin() {
  const query = new URLSearchParams(location.search);
  const participant = query.get("PROLIFIC_PID") ?? query.get("pid") ?? query.get("participant");
  const preview = query.get("preview");
  const reply = await net.post("begin", preview === null ? { study, participant } : { study, preview: true, condition: preview || null });
  if (reply.status === 410) return void say("Thank you", reply.body.error);
  if (reply.status !== 201) return void complain(reply.body.error);
  net.token = reply.body.token;
  history.replaceState(null, "", `${location.pathname}#${net.token}`);
  return true;
}

async function consentPage({ title: words, texts }) {
  title("consent", words);
  prose("consent", texts.consent);
  $("agree-text").textContent = texts.agree;
  $("agree").checked = false;
  $("accept").disabled = true;
  $("agree").onchange = () => { $("accept").disabled = !$("agree").checked; };
  show("consent");
  const agreed = (await clicked($("accept"), $("decline"))) === $("accept");
  return net.post("consent", { agreed });
}

async function instructionsPage({ texts, layout }) {
  prose("instructions", texts.instructions);
  for (const id of ["mini-map", "mini-map-text"]) $(id).toggleAttribute("hidden", !layout.map);
  for (const id of ["mini-samples", "mini-samples-text"]) $(id).toggleAttribute("hidden", !layout.samples);
  $("understood").disabled = true;
  show("instructions");
  setTimeout(() => { $("understood").disabled = false; }, READING_TIME);
  await clicked($("understood"));
  return net.post("ready");
}

// A stretch of trials. A new trial is shown while the answer before is on its way, but never two ahead.
async function trialPages(state) {
  await readyPage(state);
  const practising = state.stage === "practice";
  let { trial, next } = state, sent = null;
  while (true) {
    const stop = new AbortController();
    sent?.then((reply) => { if (reply.status >= 400) stop.abort(); }); // answered elsewhere: go where the server is
    const answer = await showTrial(trial, state, stop.signal);
    const before = await sent;
    if (before && before.status >= 400) return stateOf(before);
    next = before ? before.body.state.next : next;
    sent = net.answer(answer);
    if (!practising && next) {
      trial = next;
      continue;
    }
    const reply = await sent;
    if (reply.status >= 400) return stateOf(reply);
    if (practising) await feedbackPage(reply.body.feedback);
    if (reply.body.state.stage !== state.stage) return stateOf(reply);
    ({ trial, next } = reply.body.state);
    sent = null;
  }
}

const stateOf = (reply) => (reply.body.state ? { status: 200, body: reply.body.state } : reply);

async function showTrial(trial, state, stop) {
  const { first, total, texts } = state;
  const number = trial.index - first + 1;
  $("question").textContent = texts.question;
  $("progress").textContent = `${number} of ${total}`;
  $("trial").dataset.number = number;
  $("bar").value = (number - 1) / total;
  $("feedback").hidden = true;
  $("answers").hidden = false;
  show("trial");
  document.activeElement?.blur(); // Enter must not answer by accident
  const exposed = net.kept("exposed", {});
  const exposures = exposed.index === trial.index ? exposed.count + 1 : 1;
  net.keep("exposed", { index: trial.index, count: exposures });
  try {
    return await present(trial, { study, texts, exposures, hz, log: net.log.bind(net), stop });
  } catch {
    await pause(); // a picture did not arrive: never a trial with a missing one
    return showTrial(trial, state, stop);
  }
}

async function feedbackPage(words) {
  $("trial").dataset.phase = "feedback";
  $("feedback").querySelector("p").textContent = words;
  $("feedback").hidden = false;
  $("answers").hidden = true;
  $("next").focus();
  await clicked($("next"));
}

async function readyPage(state) {
  const back = state.trial.index > state.first;
  title("ready", back ? "Welcome back" : state.stage === "practice" ? "Practice" : "The study begins");
  prose("ready", back ? `You continue with picture ${state.trial.index - state.first + 1} of ${state.total}.` : texts(state));
  $("begin").textContent = back ? "Continue" : "Begin";
  $("begin").disabled = true;
  show("ready");
  await preload();
  hz ??= await refreshRate();
  $("begin").disabled = false;
  $("begin").focus();
  await clicked($("begin"));
}

const texts = (state) => state.texts[state.stage];

async function preload() {
  const wanted = (await net.get("preload")).body.filter((sha256) => !loaded.has(sha256));
  const queue = [...wanted];
  const report = () => {
    $("loading").value = wanted.length ? (wanted.length - queue.length) / wanted.length : 1;
    $("loading-text").textContent = queue.length ? `Loading the pictures… ${wanted.length - queue.length} of ${wanted.length}` : "All pictures are ready.";
  };
  report();
  const worker = async () => {
    for (let sha256 = queue.pop(); sha256; sha256 = queue.pop()) {
      await load(sha256);
      report();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function load(sha256, tries = TRIES) {
  const image = new Image();
  image.src = pictureUrl(study, sha256);
  try {
    await image.decode();
    loaded.set(sha256, image);
  } catch {
    if (tries <= 1) {
      await pause();
      show("ready");
      tries = TRIES + 1;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    await load(sha256, tries - 1);
  }
}

let pausing = null;

// One pause for all pictures that failed together.
function pause() {
  pausing ??= complain("Some pictures could not be loaded. Please check your connection.", true).finally(() => { pausing = null; });
  return pausing;
}

// Read aloud only where something is wrong: "Saved" after every picture would disturb.
function saveIndicator(state) {
  $("saved").dataset.state = state;
  $("saved").ariaLive = state === "offline" ? "polite" : "off";
  $("saved").textContent = SAVED[state];
}

async function finishPage() {
  show("wait");
  return net.post("finish");
}

async function donePage({ texts: { debrief }, code }) {
  prose("debrief", debrief);
  $("code").textContent = code;
  $("copy").onclick = async () => {
    try {
      await navigator.clipboard.writeText(code);
      $("copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("code"));
    }
  };
  show("debrief");
  net.flushEvents();
  net.forget();
}

async function endPage({ stage, title: words, texts: said }) {
  say(words, said[stage]);
}

function say(heading, sentence) {
  title("message", heading);
  prose("message", sentence);
  show("message");
}

async function complain(sentence, canRetry = false) {
  $("again").hidden = !canRetry;
  say(canRetry ? "A moment, please" : "This page cannot continue", sentence ?? "Something went wrong. Please reload the page.");
  if (canRetry) await clicked($("again"));
}

// What happened around the trials, for the record.
function watch() {
  const log = (kind, payload) => net.log(kind, null, payload);
  document.addEventListener("visibilitychange", () => log(document.hidden ? "hidden" : "visible"));
  for (const kind of ["blur", "focus", "online", "offline"]) addEventListener(kind, () => log(kind));
  addEventListener("resize", () => log("resize", { width: innerWidth, height: innerHeight }));
  log("loaded", { width: innerWidth, height: innerHeight, dpr: devicePixelRatio });
}

main().catch((error) => complain(`Something went wrong (${error.message}). Please reload the page.`));
