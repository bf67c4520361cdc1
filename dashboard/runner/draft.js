// Of a draft, which is shown next to its texts: opens the part of a trial whose text is edited, without a click.

import "./runner.js";

const stage = new URLSearchParams(location.search).get("stage");
const GOALS = { trial: "shown", catch: "shown", confidence: "confidence", feedback: "feedback" }; // phase of the trial
const EVERY = 50; // ms
const $ = (id) => document.getElementById(id);

HTMLElement.prototype.focus = () => {}; // it stays in the field of the text

if (stage in GOALS) {
  const timer = setInterval(() => {
    const { phase } = $("trial").dataset;
    if ($("trial").hidden) {
      if (!$("ready").hidden && !$("begin").disabled) $("begin").click();
    } else if (phase === GOALS[stage]) stop();
    else if (phase === "shown") $("answers").firstElementChild.click();
  }, EVERY);
  const stop = () => clearInterval(timer);
  addEventListener("pointerdown", stop, { once: true });
}
