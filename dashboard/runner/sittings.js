// The page between two sittings: when the next one opens by the server's clock, the personal link to it, and its start.
// Loaded by studies with several sittings only.

import { $, clicked, fill, make, prose, show, sleep, spoken, title, uuid, word } from "./dom.js";

const POLL = 300000; // ms between two questions to the server

export async function between(state, net) {
  const { texts, number } = state;
  const page = $("between") ?? makePage();
  const address = `${location.origin}${location.pathname}#${state.link}`;
  page.querySelector(".parts").replaceChildren(...parts(state, address));
  const start = make("button", { type: "button", className: "primary", textContent: texts.sitting_start, disabled: true });
  page.querySelector(".start").replaceChildren(start);
  title("between", texts.sitting_done);
  tell(state);
  show("between");
  addEventListener("hashchange", () => location.reload(), { once: true }); // the link, in this tab
  page.querySelector(".prose").after($("contact"));
  for (let wait = state.wait_ms; wait > 0;) {
    await Promise.race([sleep(Math.min(wait, POLL)), seen()]);
    const reply = await net.get("state");
    if (reply.status !== 200 || reply.body.stage !== state.stage) return reply;
    wait = reply.body.wait_ms;
    if (wait <= 0) tell(reply.body);
  }
  start.disabled = false;
  await clicked(start);
  const reply = await net.post("sitting", { number });
  return reply.status === 425 ? net.get("state") : reply; // closed meanwhile: the server says what comes
}

function makePage() {
  document.head.append(make("link", { rel: "stylesheet", href: "/runner/sittings.css" }));
  const card = make("div", { className: "card" }, make("h1", { className: "title", tabIndex: -1 }),
    make("div", { className: "prose", role: "status" }), make("div", { className: "actions start" }), make("div", { className: "parts" }));
  const page = make("section", { id: "between", className: "page", hidden: true }, card);
  document.body.append(page);
  return page;
}

// Times are the server's, written as this browser's calendar has them.
function tell({ texts, opens_ms, closes_ms, wait_ms }) {
  const [opens, closes] = [opens_ms, closes_ms].map((ms) => new Date(ms).toLocaleString(spoken(), { dateStyle: "full", timeStyle: "short" }));
  prose("between", fill(wait_ms > 0 ? texts.sitting_wait : texts.sitting_open, { opens, closes }));
}

function parts(state, address) {
  const { texts, code, redirect, withdrawal_code } = state;
  const keep = word("withdraw_code", { link: `${location.host}${location.pathname}#withdraw` });
  const event = new Blob([calendar(state, address)], { type: "text/calendar" });
  const save = make("a", { className: "button", href: URL.createObjectURL(event), download: "session.ics", textContent: texts.sitting_calendar });
  const made = [labelled("between-link", texts.sitting_link, address), make("div", { className: "actions" }, save)];
  if (code) made.unshift(labelled("between-code", word("code"), code));
  if (redirect) made.splice(1, 0, make("div", { className: "actions" }, make("a", { className: "button", href: redirect, rel: "noreferrer", textContent: word("redirect") })));
  return [...made, make("p", { className: "keep quiet" }, make("span", { textContent: keep }), output("between-private", withdrawal_code))];
}

// What can be copied, by a button or by hand.
function labelled(id, text, value) {
  const shown = output(id, value), button = make("button", { type: "button", textContent: word("copy") });
  shown.ariaLabel = text;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(value);
      button.textContent = word("copied");
    } catch {
      getSelection().selectAllChildren(shown);
    }
  };
  return make("div", { className: "handin" }, make("p", { className: "code-label", textContent: text }), make("div", { className: "code" }, shown, button));
}

const output = (id, textContent) => make("output", { id, textContent, translate: false });

// The page is seen again: a device that slept has not counted.
const seen = () => new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));

// A reminder when the sitting opens, as calendars read it (RFC 5545).
function calendar({ texts, opens_ms }, address) {
  const stamp = (ms) => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
  const escaped = (text) => text.replace(/[\\;,]/g, "\\$&").replace(/\n/g, "\\n");
  const lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Foretell//sittings//EN", "BEGIN:VEVENT", `UID:${uuid()}`, `DTSTAMP:${stamp(Date.now())}`,
    `DTSTART:${stamp(opens_ms)}`, "DURATION:PT30M", `SUMMARY:${escaped(texts.sitting_event)}`, `DESCRIPTION:${escaped(address)}`, "END:VEVENT", "END:VCALENDAR"];
  return lines.map((line) => `${line.replace(/(.{70})(?=.)/g, "$1\r\n ")}\r\n`).join("");
}
