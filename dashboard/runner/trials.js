// A stretch of trials: breaks, confidence, feedback, and how far the page may be ahead of the server.

import { $, clicked, make, prose, show, title, word } from "./dom.js";
import { tellMessages } from "./messages.js";
import { pause, preload } from "./pictures.js";
import { clockStep, digitOf, present, refreshRate } from "./trial.js";

const AHEAD = 3; // unacknowledged responses before the page waits
const SURE = 5; // steps of the confidence
const PATIENCE = 500; // ms between the steps of a trial before the page asks for it
let screen = null; // what is known of the screen and the clock

const stepOf = (trial) => trial?.step ?? 1;

export function trialPages(net, study, complain) {
  return (state) => new Stretch(net, study, complain, state).run();
}

class Stretch {
  constructor(net, study, complain, state) {
    Object.assign(this, { net, study, complain, state, waiting: 0, outcome: null });
    this.known = new Map(state.trials.map((trial) => [trial.index, trial]));
    this.end = state.first + state.total;
    this.stop = new AbortController();
    this.news = [];
  }

  async run() {
    const { state } = this;
    this.exposed = await this.net.kept("exposed", {});
    await this.readyPage();
    for (let index = state.trial.index; index < this.end && !this.outcome; index++) {
      $("trial").dataset.waits = "";
      await this.until(() => this.known.has(index) && this.waiting < AHEAD);
      delete $("trial").dataset.waits;
      if (index > state.trial.index) await this.rest(index);
      if (this.outcome || !(await this.respond(index))) break;
      if (this.known.get(index).reveals ?? state.stage === "practice") await this.feedback();
    }
    await this.until(() => this.outcome);
    await this.net.sending;
    return this.outcome.status < 300 ? { status: 200, body: this.outcome.body.state } : this.net.get("state");
  }

  // One trial, step by step: what a later step shows is known only when the response before it is stored.
  async respond(index) {
    for (let step = stepOf(this.known.get(index)); ; step++) {
      const late = step > 1 && setTimeout(() => { $("slow").textContent = word("wait"); }, PATIENCE);
      await this.until(() => stepOf(this.known.get(index)) === step);
      const trial = this.known.get(index);
      if (step > 1 && !this.outcome) await this.tellMore(trial);
      clearTimeout(late);
      $("slow").textContent = "";
      if (this.outcome) return false;
      const answer = await this.showTrial(trial);
      if (answer === null) return false;
      this.send(trial.steps ? { ...answer, step } : answer);
      if (step >= (trial.steps ?? 1)) return true;
    }
  }

  // Loads what the second step shows; before that of the first trial, says what it is.
  tellMore({ about }) {
    return about ? this.waitingPage(word("look"), about, word("continue")) : this.prepare("trial");
  }

  async prepare(page) {
    await preload(this.net, this.study, this.complain, page);
    screen ??= { frame_hz: await refreshRate(), clock_ms: clockStep() };
  }

  send(answer) {
    this.waiting += 1;
    this.net.answer(answer).then((reply) => {
      this.waiting -= 1;
      this.last = reply;
      if (reply.status >= 300 || reply.body.state.stage !== this.state.stage) {
        this.outcome ??= reply;
        if (reply.status >= 300) this.stop.abort(); // responded to in another tab, or finished: follow the server
      } else {
        for (const trial of reply.body.state.trials) this.known.set(trial.index, trial);
      }
      for (const wake of this.news.splice(0)) wake();
    });
  }

  async until(met) {
    while (!met() && !(this.outcome && this.outcome.status >= 300)) await new Promise((wake) => this.news.push(wake));
  }

  async rest(index) {
    const done = index - this.state.first;
    if (this.state.stage !== "main" || !this.state.breaks.includes(done)) return;
    await this.until(() => this.waiting === 0); // the server lists the next images
    if (this.outcome) return;
    await tellMessages(this.net, index);
    const began = performance.now();
    await this.waitingPage(word("break"), word("break_text", { number: done, total: this.state.total }), word("continue"), this.known.get(index).opening);
    this.net.log("break", index, { ms: performance.now() - began });
  }

  async readyPage() {
    const { state } = this, { index, opening } = state.trial, number = index - state.first + 1;
    if (number > 1 && !opening) return this.waitingPage(word("back"), word("resume", { number, total: state.total }), word("continue"));
    return this.waitingPage(word(state.stage), state.texts[state.stage], word("begin"), opening);
  }

  // A block of trials has an opening of its own.
  async waitingPage(heading, text, go, opening = { title: heading, text }) {
    title("ready", opening.title);
    prose("ready", opening.text);
    $("begin").textContent = go;
    $("begin").disabled = true;
    show("ready");
    await this.prepare("ready");
    $("begin").disabled = false;
    $("begin").focus();
    await clicked($("begin"));
  }

  async showTrial(trial) {
    const { first, total, slow_ms, keys } = this.state, texts = { ...this.state.texts, ...trial.texts };
    const number = trial.index - first + 1;
    $("question").textContent = texts.question;
    $("progress").textContent = word("progress", { number, total });
    $("trial").dataset.number = number;
    $("bar").value = (number - 1) / total;
    for (const id of ["feedback", "confidence"]) $(id).hidden = true;
    $("answers").hidden = false;
    show("trial");
    document.activeElement?.blur(); // Enter must not respond by accident
    const step = stepOf(trial), again = this.exposed.index === trial.index && (this.exposed.step ?? 1) === step;
    const exposures = again ? this.exposed.count + 1 : 1;
    this.exposed = { index: trial.index, step, count: exposures };
    const kept = this.net.keep("exposed", this.exposed);
    try {
      const more = trial.part && await (await import(`./${trial.part}.js`)).offer(trial, this);
      const answer = await present(trial, { study: this.study, texts, number, exposures, kept, screen, keys, slow: slow_ms, log: this.net.log.bind(this.net), stop: this.stop.signal });
      return answer && { ...answer, ...more?.(), ...(this.state.confidence && { confidence: await this.sure() }) };
    } catch {
      await pause(this.complain);
      return this.showTrial(trial);
    }
  }

  // Asks for the confidence: 0 to 1 in equal steps, by button or by the keys 1 to 5.
  async sure() {
    $("trial").dataset.phase = "confidence";
    $("confidence").querySelector("p").textContent = this.state.texts.confidence;
    const buttons = Array.from({ length: SURE }, (_, i) => make("button", { type: "button", textContent: i + 1, value: i / (SURE - 1) }));
    buttons[0].ariaLabel = `1: ${word("sure_low")}`;
    buttons[SURE - 1].ariaLabel = `${SURE}: ${word("sure_high")}`;
    $("sure").replaceChildren(...buttons);
    $("answers").hidden = true;
    $("confidence").hidden = false;
    const abort = new AbortController();
    addEventListener("keydown", (event) => { if (!event.repeat) buttons[digitOf(event) - 1]?.click(); }, { signal: abort.signal });
    const chosen = await clicked(...buttons);
    abort.abort();
    $("trial").dataset.phase = "blank";
    return Number(chosen.value);
  }

  async feedback() {
    await this.until(() => this.waiting === 0);
    if (this.last.status >= 300) return;
    $("trial").dataset.phase = "feedback";
    $("feedback").querySelector("p").textContent = this.last.body.feedback;
    $("feedback").hidden = false;
    $("answers").hidden = $("confidence").hidden = true;
    $("next").focus();
    await clicked($("next"));
  }
}

