// Requests that survive a bad connection: endless retries with backoff, an outbox that survives a reload.

import { uuid } from "./dom.js";

const FIRST_WAIT = 500, LONGEST_WAIT = 30000; // ms
const TEMPORARY = new Set([0, 408, 429, 502, 503, 504]);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Net {
  constructor(onStatus) {
    this.onStatus = onStatus;
    this.token = "";
    this.events = [];
    this.sending = Promise.resolve();
    addEventListener("pagehide", () => this.flushEvents(true));
  }

  get key() { return `foretell-${this.token.slice(0, 12)}`; }

  async once(method, path, body, keepalive = false) {
    const headers = { "X-Session-Token": this.token };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    try {
      const reply = await fetch(`/api/v1/${path}`, {
        method, headers, keepalive, cache: "no-store", credentials: "omit",
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      return { status: reply.status, body: await reply.json() };
    } catch {
      return { status: 0, body: {} }; // no connection, or an answer cut short
    }
  }

  async call(method, path, body) {
    for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      const reply = await this.once(method, path, body);
      if (!TEMPORARY.has(reply.status)) return reply;
      this.onStatus("offline");
      await Promise.race([sleep(wait * (0.75 + Math.random() / 2)), online()]);
    }
  }

  get(path) { return this.call("GET", path); }
  post(path, body = {}) { return this.call("POST", path, body); }

  // Kept in the browser before it is sent: a crash or a reload in between loses nothing.
  answer(answer) {
    this.keep("outbox", [...this.kept("outbox", []), answer]);
    this.sending = this.sending.then(() => this.send(answer));
    return this.sending;
  }

  async send(answer) {
    this.onStatus("saving");
    const reply = await this.post("responses", answer);
    this.keep("outbox", this.kept("outbox", []).filter((other) => other.attempt_id !== answer.attempt_id));
    this.onStatus(reply.status < 300 ? "saved" : "again");
    this.flushEvents();
    return reply;
  }

  async replay() {
    for (const answer of this.kept("outbox", [])) await this.send(answer);
  }

  log(kind, trial_index = null, payload = {}, at = performance.now()) {
    this.events.push({ event_id: uuid(), kind, trial_index, t_client_ms: at, payload });
  }

  async flushEvents(leaving = false) {
    const events = this.events.splice(0, 100);
    if (!events.length || !this.token) return;
    const reply = await this.once("POST", "events", events, leaving);
    if (TEMPORARY.has(reply.status)) this.events.unshift(...events); // the same ids again: kept once
  }

  kept(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(`${this.key}-${name}`)) ?? otherwise; } catch { return otherwise; }
  }

  keep(name, value) {
    try { localStorage.setItem(`${this.key}-${name}`, JSON.stringify(value)); } catch { /* storage is switched off */ }
  }

  forget() {
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith(this.key)) localStorage.removeItem(key);
    } catch { /* storage is switched off */ }
  }
}

function online() {
  return new Promise((resolve) => addEventListener("online", resolve, { once: true }));
}
