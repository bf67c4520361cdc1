// Small helpers for the page.

export const $ = (id) => document.getElementById(id);

// A draft has drawings in place of images: see draft.js.
export const pictureUrl = (study, sha256) =>
  document.body.dataset.api ? `/runner/${sha256}.svg` : `/assets/${encodeURIComponent(study)}/${sha256}`;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// crypto.randomUUID exists on secure pages only; a laboratory's plain http address is none.
export function uuid() {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const CONTACT_ON = new Set(["return", "consent", "message", "withdraw", "end"]);

export function show(id) {
  for (const section of document.querySelectorAll("body > section")) section.hidden = section.id !== id;
  if (CONTACT_ON.has(id)) $(id).querySelector(".prose").after($("contact"));
  if (id === "trial") return;
  scrollTo(0, 0);
  if (document.body.dataset.api) return; // a draft is shown next to its texts, where the focus stays
  $(id).querySelector("h1")?.focus(); // a screen reader begins at the new page's heading
}

let words = {}, language = document.documentElement.lang;

// The page's own words, in the study's language.
export function speak(entry) {
  words = entry.words;
  document.documentElement.lang = language = entry.language;
  document.title = entry.title;
  document.documentElement.dataset.colours = entry.colours;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = word(element.dataset.text);
}

// The study's language; the page's own is another one while a browser translates it.
export const spoken = () => language;

export const word = (key, values = {}) => fill(words[key] ?? "", values);

export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// Elements from plain values; text is never HTML.
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function prose(id, text) {
  $(id).querySelector(".prose").replaceChildren(...text.split(/\n\s*\n/).map((part) => make("p", { textContent: part.trim() })));
}

// The contact address: one element, moved to each page that shows it.
export function tellContact({ lines, email }) {
  const parts = lines.map((text) => make("p", { textContent: text }));
  if (email) parts.at(-1).append(" ", make("a", { href: `mailto:${email}`, textContent: email }));
  $("contact").replaceChildren(...parts);
}

// The response keys, on every button that they press.
export function nameKeys(keys) {
  for (const element of document.querySelectorAll("kbd[data-key]")) element.textContent = keys[element.dataset.key].toUpperCase();
}

export function title(id, text) {
  $(id).querySelector(".title").textContent = text;
}

export function clicked(...buttons) {
  return new Promise((resolve) => {
    const abort = new AbortController();
    for (const button of buttons) {
      button.addEventListener("click", () => { abort.abort(); resolve(button); }, { signal: abort.signal });
    }
  });
}
