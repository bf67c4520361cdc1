// The participant's page: it shows the stage that the server knows, and sends the responses.

import { clockOffset } from "./clock.js";
import { $, clicked, make, nameKeys, prose, show, speak, spoken, tellContact, title, word } from "./dom.js";
import { annotate } from "./example.js";
import { asked, questionnaire } from "./forms.js";
import { device, touchOnly, unfit } from "./gate.js";
import { tellMessages } from "./messages.js";
import { Net } from "./net.js";
import { trialPages } from "./trials.js";

const READING_TIME = 2000; // ms before a page of instructions can be left
const WITHDRAW = "withdraw"; // /run/STUDY#withdraw
// The link's id has a session, and nothing sent shows that it is theirs.
const KNOWN = new Set(["refused_known", "refused_finished"]);
const PERSON = ["pid", "participant", "participantid", "workerid", "surveycode", "sonaid", "userid", "id"]; // without capitals and signs
const HARMLESS = /^(preview|sig|utm_.*|fbclid|gclid)$/i; // what is added to links and names nobody
const PATIENCE = 120000; // ms the end may take before the receipt is shown

const study = decodeURIComponent(location.pathname.split("/")[2]);
const { api } = document.body.dataset; // of a draft, whose requests are served from the study file
const net = api ? new Net("", saveIndicator, api) : new Net(study, saveIndicator);
if (api) net.credentials = "same-origin";
const tabs = globalThis.BroadcastChannel && new BroadcastChannel("foretell"); // tabs of one browser
const trials = trialPages(net, study, complain);
let privateCode = "", receipt = "";

const PAGES = {
  consent: consentPage, instructions: instructionsPage, check: checkPage, example: examplePage, practice: trials, main: trials,
  questionnaire: questionnairePage, debrief: finishPage,
  between: async (state) => (await import("./sittings.js")).between(state, net),
};

async function main() {
  watch();
  const token = location.hash.slice(1), link = token.startsWith("back-") && token.slice(5); // to the next sitting
  if (token !== WITHDRAW && !link) net.token = token;
  const preview = !net.token && new URLSearchParams(location.search).has("preview");
  if (preview) net.credentials = "same-origin";
  const entry = await net.post("entry", { study, preview });
  if (entry.status !== 200) return complain(entry.body.error);
  speak(entry.body);
  tellContact(entry.body.contact);
  clockOffset(net);
  if (token === WITHDRAW) return withdrawPage();
  if (!net.token && !(await enter(entry.body.device, link))) return;
  await net.replay();
  let reply = await net.get("state");
  while (reply) reply = await go(reply);
}

// One page; the reply that says what comes next, or nothing at the end.
async function go({ status, body }) {
  if (status === 423) return elsewherePage();
  if (status >= 400) return complain(body.error);
  $("preview").hidden = !body.preview;
  tellContact(body.contact);
  if (body.keys) nameKeys(body.keys);
  privateCode = body.withdrawal_code ?? "";
  receipt = body.receipt ?? "";
  $("leave").hidden = !privateCode || !PAGES[body.stage];
  if (!$("leave").hidden) await tellMessages(net);
  return (PAGES[body.stage] ?? endPage)(body);
}

// Ids and options of the link are used once and leave the address bar at once.
async function enter(needs, link) {
  const query = new URLSearchParams(location.search);
  const preview = query.get("preview");
  const reason = await unfit(needs);
  if (reason !== null) return void say(word("gate"), `${reason}\n\n${word("gate_return")}`);
  if (!link && preview === null && ![...query.keys()].some((name) => !HARMLESS.test(name)) && await net.hasFinished()) await finishedPage();
  const sent = link ? { study, link } : preview === null ? { study, ...(await recruited(query)) } : { study, preview: true, condition: preview || null };
  let reply = await net.post("begin", sent);
  while (KNOWN.has(reply.body.says)) reply = await returnPage(reply.body.error, sent);
  if (reply.status === 410) return void say(word("thanks"), reply.body.error);
  if (reply.status !== 201) return void complain(reply.body.error);
  net.token = reply.body.token;
  history.replaceState(null, "", `${location.pathname}#${net.token}`);
  return true;
}

// A link without an id where one was followed to the end: nobody takes part again by mistake.
async function finishedPage() {
  say(word("done"), word("all_saved"));
  await pressed(word("another"));
}

// Waits for the button of a message, which has these words meanwhile.
async function pressed(words) {
  $("again").textContent = words;
  $("again").hidden = false;
  await clicked($("again"));
  $("again").textContent = word("again");
  $("again").hidden = true;
}

// The id of the link, however its name is spelled, and what this browser keeps to show that the session is its own.
async function recruited(query) {
  const names = [...query.keys()], plain = (name) => name.toLowerCase().replace(/[^a-z]/g, "");
  const sent = (name) => query.get(names.find((one) => plain(one) === name)); // null where there is none
  const prolific = sent("prolificpid"), person = PERSON.map(sent).find((id) => id !== null) ?? null;
  if (prolific === null && person === null) {
    const strange = names.filter((name) => !HARMLESS.test(name));
    if (strange.length) net.log("unknown_parameters", null, { names: strange.join(", ").slice(0, 200) });
    return {};
  }
  const link = { source: "link", person, signature: query.get("sig") };
  const ids = {
    source: "prolific", person: prolific, study: sent("studyid"), session: sent("sessionid"), token: sent("prolifictoken"),
  };
  return { recruit: prolific === null ? link : ids, proof: { browser: await net.secret(prolific ?? person) } };
}

// The link's session was started in another browser: the private code shows that it is theirs.
async function returnPage(sentence, sent) {
  prose("return", sentence);
  show("return");
  await clicked($("return-go"));
  const code = $("return-code").value.trim();
  return net.post("begin", code ? { ...sent, proof: { ...sent.proof, code } } : sent);
}

async function consentPage({ title: words, texts, boxes }) {
  title("consent", words);
  prose("consent", texts.consent);
  const inputs = boxes.map(() => make("input", { type: "checkbox" }));
  const labels = inputs.map((input, i) => make("label", { className: "check" }, input, make("span", { textContent: boxes[i] })));
  $("boxes").replaceChildren(...labels);
  $("accept").disabled = true;
  $("boxes").onchange = () => { $("accept").disabled = !inputs.every((input) => input.checked); };
  show("consent");
  const agreed = (await clicked($("accept"), $("decline"))) === $("accept");
  return net.post("consent", { agreed, device: agreed ? device() : null });
}

async function instructionsPage({ texts, notice }) {
  prose("instructions", texts.instructions);
  $("notice").textContent = notice ?? "";
  $("notice").hidden = !notice;
  return readPage("instructions");
}

async function examplePage({ example, screen, keys }) {
  prose("example", example);
  $("keys").replaceChildren(...(touchOnly() ? [word("touch")] : keyed(word("keys"), keys)));
  show("wait");
  await annotate($("mini"), screen, study, complain);
  return readPage("example");
}

async function readPage(stage) {
  const button = $(stage).querySelector("button.primary");
  button.disabled = true;
  show(stage);
  setTimeout(() => { button.disabled = false; }, READING_TIME);
  await clicked(button);
  return net.post("ready", { stage });
}

// The two places of the sentence become keys.
function keyed(sentence, keys) {
  return sentence.split(/\{(left|right)\}/).map((part, i) => (i % 2 ? make("kbd", { textContent: keys[part].toUpperCase() }) : part));
}

async function checkPage({ attempt, questions, texts }) {
  prose("check", texts.check);
  show("check");
  return net.post("check", { attempt, answers: await asked("check", questions) });
}

async function questionnairePage({ items, texts }) {
  const draft = await net.draft(receipt); // the receipt of all responses, known only to this participant
  prose("questionnaire", texts.questionnaire);
  show("questionnaire");
  const reply = await net.post("questionnaire", { answers: await questionnaire("questionnaire", items, draft) });
  if (reply.status === 200) await net.forgetDrafts();
  return reply;
}

// The server gives the code only when it has stored every response.
async function finishPage() {
  show("wait");
  const late = setTimeout(() => say(word("moment"), word("late", { receipt })), PATIENCE);
  const reply = await net.post("finish");
  clearTimeout(late);
  return reply;
}

async function endPage({ stage, title: words, text, code, redirect, preview }) {
  const done = stage === "done";
  title("end", done ? word("done") : words);
  prose("end", text);
  $("handin").hidden = !code;
  $("code").textContent = code ?? "";
  $("copy").onclick = () => copy(code);
  $("all-saved").hidden = !done;
  $("redirect").hidden = !redirect;
  if (redirect) $("redirect").href = redirect;
  $("keep").hidden = $("withdraw-now").hidden = !privateCode;
  $("keep-label").textContent = word("withdraw_code", { link: `${location.host}${location.pathname}#${WITHDRAW}` });
  $("private").textContent = privateCode;
  $("receipt-line").hidden = !receipt;
  $("receipt").textContent = receipt;
  show("end");
  await net.forgetDrafts();
  await net.forgetSecrets();
  if (!preview) await net.noteEnd(done);
  await net.flushEvents();
  await net.forget();
}

async function copy(code) {
  try {
    await navigator.clipboard.writeText(code);
    $("copy").textContent = word("copied");
  } catch {
    getSelection().selectAllChildren($("code"));
  }
}

async function elsewherePage() {
  title("message", word("elsewhere"));
  prose("message", word("elsewhere_text"));
  $("leave").hidden = true;
  show("message");
  await pressed(word("here"));
  const taken = await net.post("takeover");
  if (taken.status >= 400) return taken;
  tabs?.postMessage(net.token);
  await net.sending;
  await net.replay();
  return net.get("state");
}

// During the study by its button, afterwards by #withdraw and the private code.
async function withdrawPage() {
  $("leave").hidden = true;
  $("withdraw-code").value = privateCode;
  show("withdraw");
  while ((await clicked($("erase"), $("stay"))) === $("erase")) {
    const reply = await net.post("withdraw", { code: $("withdraw-code").value });
    if (reply.status === 200) {
      privateCode = receipt = ""; // they are no longer valid
      return endPage(reply.body);
    }
    $("withdraw-hint").textContent = reply.body.error;
    $("withdraw-hint").hidden = false;
  }
  if (net.token) location.reload(); // back to the same place
  else history.back();
}

// Read aloud only where something is wrong.
function saveIndicator(state) {
  $("saved").dataset.state = state;
  $("saved").ariaLive = state === "offline" || state === "unsaved" ? "polite" : "off";
  $("saved").textContent = word(state);
}

function say(heading, sentence) {
  $("again").hidden = true;
  if (heading) title("message", heading); // an unknown study has no texts: keep the default heading
  prose("message", sentence);
  show("message");
}

function complain(sentence, canRetry = false) {
  say(canRetry ? word("moment") : word("cannot"), sentence ?? word("wrong"));
  $("again").hidden = !canRetry;
}

// What happened around the trials, for the record.
function watch() {
  const log = (kind, payload) => net.log(kind, null, payload);
  document.addEventListener("visibilitychange", () => log(document.hidden ? "hidden" : "visible"));
  for (const kind of ["blur", "focus", "online", "offline"]) addEventListener(kind, () => log(kind));
  // A browser's translator changes names that participants compare, and can make two of them the same.
  const translated = new MutationObserver(() => {
    const { className, lang } = document.documentElement;
    if (!/\btranslated-(ltr|rtl)\b/.test(className) && lang === spoken()) return;
    translated.disconnect();
    log("translated", { language: lang.slice(0, 20) });
  });
  translated.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "lang"] });
  addEventListener("resize", () => log("resize", { width: innerWidth, height: innerHeight }));
  $("leave").onclick = $("withdraw-now").onclick = () => { log("withdraw_opened"); withdrawPage(); };
  // Taken over by another tab: the server says so to a page that asks again.
  if (tabs) tabs.onmessage = ({ data }) => { if (net.token && data === net.token) location.reload(); };
  log("loaded", { width: innerWidth, height: innerHeight, dpr: devicePixelRatio });
}

main().catch((error) => { console.error(error); complain(); }); // details go to the console
