// Questions with radio buttons and texts: the comprehension check and the questionnaire.

import { $, clicked, make } from "./dom.js";

const KEEP_EVERY = 200; // ms between two writings of what is being typed

function choices(name, legend, options, ends = null) {
  const labels = options.map(({ value, text }) => make("label", {}, make("input", { type: "radio", name, value }), make("span", { textContent: text })));
  const group = make("div", { className: ends ? "scale" : "choices" }, ...labels);
  const field = make("fieldset", {}, make("legend", { textContent: legend }), group);
  if (ends) field.append(make("div", { className: "ends" }, ...ends.map((textContent) => make("span", { textContent }))));
  return field;
}

function item({ id, kind, text, options, points, low, high }) {
  if (kind === "choice") return choices(id, text, options.map((option) => ({ value: option, text: option })));
  if (kind === "scale") return choices(id, text, Array.from({ length: points }, (_, i) => ({ value: i + 1, text: i + 1 })), [low, high]);
  return make("fieldset", {}, make("legend", { textContent: text }), make("textarea", { name: id, rows: 3, maxLength: 5000, ariaLabel: text }));
}

// Shows the fields in a section and resolves, once everything required is there, with the form's data.
async function filled(section, fields, required, draft = null) {
  const form = $(section).querySelector("form");
  const hint = $(section).querySelector(".hint");
  form.replaceChildren(...fields);
  hint.hidden = true;
  form.onsubmit = (event) => event.preventDefault(); // Enter in a field must not leave the page
  const stop = draft && resume(form, draft);
  while (true) {
    await clicked($(section).querySelector("button.primary"));
    const data = new FormData(form);
    const missing = required.find((name) => !String(data.get(name) ?? "").trim());
    if (missing === undefined) {
      stop?.();
      return data;
    }
    hint.hidden = false;
    const field = form.elements[missing];
    (field[0] ?? field).focus();
  }
}

// Fills in what was typed before a reload or in another tab, and keeps what is typed from here on, until stopped.
function resume(form, { kept, keep }) {
  for (const [name, value] of Object.entries(kept)) if (form.elements[name]) form.elements[name].value = value;
  let waiting = null;
  const now = () => { waiting = null; keep(Object.fromEntries(new FormData(form))); };
  form.oninput = () => { waiting ??= setTimeout(now, KEEP_EVERY); };
  return () => { form.oninput = null; clearTimeout(waiting); };
}

export async function asked(section, questions) {
  const fields = questions.map(({ text, options }, i) => choices(`q${i}`, text, options.map((option, value) => ({ value, text: option }))));
  const data = await filled(section, fields, questions.map((_, i) => `q${i}`));
  return questions.map((_, i) => Number(data.get(`q${i}`)));
}

export async function questionnaire(section, items, draft) {
  const data = await filled(section, items.map(item), items.filter(({ required }) => required).map(({ id }) => id), draft);
  const given = items.filter(({ id }) => String(data.get(id) ?? "").trim());
  return Object.fromEntries(given.map(({ id, kind }) => [id, kind === "scale" ? Number(data.get(id)) : data.get(id)]));
}
