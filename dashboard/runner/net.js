// Requests that survive a bad connection: endless retries with backoff, an outbox that survives a reload.

import { sleep, uuid } from "./dom.js";
import { all, erase, read, write } from "./store.js";

const FIRST_WAIT = 500, LONGEST_WAIT = 30000; // ms
const TEMPORARY = new Set([0, 408, 429, 502, 503, 504]);
const LOCKED = 423, REPLACED = 401; // not accepted: the response stays in the outbox

export class Net {
  constructor(study, onStatus, api = "/api/v1") {
    this.api = api;
    this.study = encodeURIComponent(study); // selects the language of refusals
    this.onStatus = onStatus;
    this.token = "";
    this.credentials = "omit"; // a researcher who previews sends their login; participants have none
    this.tab = ownTab();
    this.events = [];
    this.sending = Promise.resolve();
    addEventListener("pagehide", () => this.flushEvents(true));
  }

  get key() { return `${this.token.slice(0, 12)}-`; }

  async once(method, path, body, keepalive = false) {
    const headers = { "X-Session-Token": this.token, "X-Tab": this.tab, "X-Study": this.study };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    try {
      const reply = await fetch(`${this.api}/${path}`, {
        method, headers, keepalive, cache: "no-store", credentials: this.credentials,
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      return { status: reply.status, body: await reply.json() };
    } catch {
      return { status: 0, body: {} }; // no connection, or an incomplete reply
    }
  }

  async call(method, path, body) {
    for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      const reply = await this.once(method, path, body);
      if (!TEMPORARY.has(reply.status)) return reply;
      this.onStatus(reply.status >= 500 ? "unsaved" : "offline"); // there is a connection: the server stores nothing
      await Promise.race([sleep(wait * (0.75 + Math.random() / 2)), online()]);
    }
  }

  get(path) { return this.call("GET", path); }
  post(path, body = {}) { return this.call("POST", path, body); }

  // Stored in the browser before it is sent: a crash or a reload in between loses nothing.
  answer(answer) {
    const kept = this.keep(`outbox-${answer.attempt_id}`, answer);
    this.sending = this.sending.then(() => kept).then(() => this.send(answer));
    return this.sending;
  }

  async send(answer) {
    this.onStatus("saving");
    const reply = await this.post("responses", answer);
    if (reply.status === LOCKED || reply.status === REPLACED) return reply;
    await this.forget(`outbox-${answer.attempt_id}`);
    this.onStatus(reply.status < 300 ? "saved" : "resending");
    this.flushEvents();
    return reply;
  }

  async replay() {
    const waiting = await all(`${this.key}outbox-`).catch(() => []);
    waiting.sort((one, other) => one.trial_index - other.trial_index || (one.step ?? 1) - (other.step ?? 1));
    for (const answer of waiting) if ((await this.send(answer)).status === LOCKED) return;
  }

  log(kind, trial_index = null, payload = {}, at = performance.now()) {
    this.events.push({ event_id: uuid(), kind, trial_index, t_client_ms: at, payload });
  }

  async flushEvents(leaving = false) {
    const events = this.events.splice(0, 100);
    if (!events.length || !this.token) return;
    const reply = await this.once("POST", "events", events, leaving);
    if (TEMPORARY.has(reply.status)) this.events.unshift(...events); // the same ids again: stored once
  }

  // Storage that fails in the middle of a study must not stop it: the response is sent to the server as well.
  kept(name, otherwise) { return read(this.key + name, otherwise).catch(() => otherwise); }
  async keep(name, value) { try { await write(this.key + name, value); } catch { this.log("storage_failed"); } }
  forget(name = "") { return erase(this.key + name).catch(() => {}); }

  // Unsent text; by participant, not by token, which changes when they open their link again.
  async draft(person) {
    const key = `draft-${this.study}/${person}`;
    return { kept: await read(key, {}).catch(() => ({})), keep: (values) => write(key, values).catch(() => {}) };
  }

  // Proves that a link's session belongs to this browser: an id alone can be guessed. Erased when the study ends.
  async secret(person) {
    const key = `secret-${this.study}/${person}`;
    const made = await read(key, null).catch(() => null) ?? `${uuid()}-${uuid()}`;
    await write(key, made).catch(() => {});
    return made;
  }

  forgetSecrets() { return erase(`secret-${this.study}/`).catch(() => {}); }

  // Whether the last participation of this browser was finished, without a word about whose it was.
  noteEnd(done) { return write(`finished-${this.study}`, done).catch(() => {}); }
  hasFinished() { return read(`finished-${this.study}`, false).catch(() => false); }

  forgetDrafts() { return erase(`draft-${this.study}/`).catch(() => {}); }
}

// The tab's name outlives a reload. It is put away only when the page goes: a copied tab must not get it too.
function ownTab() {
  let tab = null;
  try {
    tab = sessionStorage.getItem("tab");
    sessionStorage.removeItem("tab");
    addEventListener("pagehide", () => sessionStorage.setItem("tab", tab));
    addEventListener("pageshow", (event) => { if (event.persisted) sessionStorage.removeItem("tab"); });
  } catch { /* storage is switched off */ }
  return (tab ??= uuid());
}

function online() {
  return new Promise((resolve) => addEventListener("online", resolve, { once: true }));
}
