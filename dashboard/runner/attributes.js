// Which attributes does the AI use? A grid of images, and a box for each attribute. Loaded by such studies only.

import { $, fill, make, word } from "./dom.js";

const NONE = "-"; // as study/attributes/sets.py

let list = null;

// Returns what gives the set when the response is confirmed.
export async function offer({ index, map, attributes }, { net, state: { texts } }) {
  list ??= new List();
  const kept = await net.kept("ticked", {});
  list.begin(attributes, texts, kept.index === index ? kept.letters : "", (letters) => net.keep("ticked", { index, letters }));
  $("trial").dataset.attributes = map ? "explained" : "alone";
  return () => ({ place: list.text });
}

class List {
  constructor() {
    document.head.append(make("link", { rel: "stylesheet", href: "/runner/attributes.css" }));
    this.ends = ["target", "map"].map((id) => {
      const ends = make("p", { className: "ends", translate: false }, make("span"), make("span"));
      $(id).before(ends);
      return ends;
    });
    this.boxes = make("div", { id: "attributes", role: "group" });
    this.boxes.setAttribute("aria-labelledby", "question");
    $("answers").before(this.boxes);
    // Nothing is confirmed before something is chosen.
    $("answers").addEventListener("click", (event) => { if (!this.text) { event.stopImmediatePropagation(); $("slow").textContent = word("attributes_missing"); } }, true);
    addEventListener("keydown", (event) => this.press(event), true);
  }

  begin({ ends, offered }, texts, letters, keep) {
    this.keep = keep;
    const words = ["end_first", "end_second"].map((key, i) => fill(texts[key], { name: ends[i] }));
    for (const shown of this.ends) [...shown.children].forEach((end, i) => { end.textContent = words[i]; });
    this.boxes.replaceChildren(...offered.map((one) => this.offer(one.letter, one.name, letters)), this.offer(NONE, texts.none_of_these, letters));
    if (document.body.dataset.api && !this.text) this.boxes.querySelector("input").checked = true; // a draft goes on without a hand
    this.mark();
  }

  offer(letter, name, letters) {
    const input = make("input", { type: "checkbox", value: letter, checked: letters.includes(letter) });
    input.addEventListener("change", () => this.change(input));
    return make("label", { translate: false }, input, make("span", { textContent: name }));
  }

  get inputs() { return [...this.boxes.querySelectorAll("input")]; }
  get isOpen() { return !$("trial").hidden && $("trial").dataset.phase === "shown"; }
  get text() { return this.inputs.filter((one) => one.checked).map((one) => one.value).sort().join(""); }

  // None of them, and any of them, exclude each other.
  change(input) {
    if (input.checked) for (const one of this.inputs) if ((one.value === NONE) !== (input.value === NONE)) one.checked = false;
    $("slow").textContent = "";
    this.mark();
    this.keep(this.text);
  }

  mark() { $("trial").toggleAttribute("data-chosen", Boolean(this.text)); }

  // Enter confirms; a box is ticked by the space bar, and every key but those that move is the list's.
  press(event) {
    if (!this.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event, on = document.activeElement;
    if (key === "Tab" || key === "Shift" || on?.closest(".leave, summary")) return;
    event.stopImmediatePropagation();
    if (key !== "Enter" || on?.matches("button")) return;
    event.preventDefault();
    if (!event.repeat) $("answers").firstElementChild?.click();
  }
}
