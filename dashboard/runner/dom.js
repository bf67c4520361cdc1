// Small helpers for the page.

export const $ = (id) => document.getElementById(id);

export const pictureUrl = (study, sha256) => `/assets/${encodeURIComponent(study)}/${sha256}`;

// crypto.randomUUID exists on secure pages only; a laboratory's plain http address is none.
export function uuid() {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

export function show(id) {
  for (const section of document.querySelectorAll("body > section")) section.hidden = section.id !== id;
  if (id === "trial") return;
  scrollTo(0, 0);
  $(id).querySelector("h1")?.focus(); // a screen reader begins at the new page's heading
}

// Paragraphs from plain text; never HTML.
export function prose(id, text) {
  const paragraphs = text.split(/\n\s*\n/).map((part) => {
    const p = document.createElement("p");
    p.textContent = part.trim();
    return p;
  });
  $(id).querySelector(".prose").replaceChildren(...paragraphs);
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
