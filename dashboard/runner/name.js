// A short text: what a unit of the network responds to. Loaded in every condition of studies that ask for it.

import { $, make, word } from "./dom.js";

const MOST = 200; // characters, as study/names/texts.py counts them

let field = null;

// Returns what gives the text when the response is confirmed.
export async function offer({ index, target }, stretch) {
  field ??= new Field();
  $("trial").dataset.name = target ? "" : "alone";
  $("target").parentElement.querySelector("figcaption").textContent = target ? stretch.state.texts.target_legend : "\u00a0";
  await field.begin(index, stretch);
  return () => ({ text: field.text });
}

class Field {
  constructor() {
    document.head.append(make("link", { rel: "stylesheet", href: "/runner/name.css" }));
    this.input = make("textarea", { id: "name", rows: 2, autocomplete: "off", dir: "auto", translate: false, ariaLabel: word("name_label"), placeholder: word("name_label") });
    this.input.setAttribute("aria-describedby", "name-count");
    this.count = make("small", { id: "name-count" });
    this.status = make("span", { className: "name-status", role: "status" });
    $("answers").before(make("div", { className: "naming" }, this.input, this.count, this.status));
    this.input.oninput = () => this.change();
    // Nothing is confirmed before there is a text, or while it is too long.
    $("answers").addEventListener("click", (event) => { if (this.waits) { event.stopImmediatePropagation(); this.refuse(); } }, true);
    addEventListener("keydown", (event) => this.press(event), true);
    // Typing begins at once, except where it would open a keyboard over the images.
    if (matchMedia("(hover: hover)").matches) new MutationObserver(() => this.isOpen && this.input.focus({ preventScroll: true })).observe($("trial"), { attributeFilter: ["data-phase"] });
  }

  // A text that was not confirmed survives a reload.
  async begin(index, { net }) {
    const draft = this.index === index ? null : await net.kept("name", {});
    if (draft) this.input.value = draft.index === index ? draft.text : "";
    if (document.body.dataset.api) this.input.value ||= "…"; // a draft of the page goes on without a hand
    Object.assign(this, { index, net });
    this.draw();
  }

  get isOpen() { return !$("trial").hidden && $("trial").dataset.phase === "shown"; }
  get text() { return this.input.value.trim(); }
  get length() { return [...this.text].length; }
  get waits() { return this.isOpen && (!this.length || this.length > MOST); }

  change() {
    $("slow").textContent = "";
    this.net.keep("name", { index: this.index, text: this.input.value });
    this.draw();
  }

  draw() {
    this.count.textContent = `${this.length} / ${MOST}`;
    this.count.toggleAttribute("data-over", this.length > MOST);
    this.status.textContent = this.length > MOST ? word("name_long", { number: MOST }) : "";
    $("trial").toggleAttribute("data-written", this.length > 0 && this.length <= MOST);
  }

  // Digits are typed and press no button. Enter confirms, unless an input method is composing.
  press(event) {
    if (!this.isOpen) return;
    const { key } = event;
    if (key !== "Tab") event.stopImmediatePropagation();
    if (event.target !== this.input || key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (!event.repeat) $("answers").firstElementChild?.click();
  }

  refuse() { $("slow").textContent = this.length ? word("name_long", { number: MOST }) : word("name_missing"); }
}
