// Messages of the researchers: read between two parts of the study or before a break, never between two trials.

import { $, clicked, prose, show } from "./dom.js";

const told = new Set(); // the server may not know yet that they were read

export async function tellMessages(net, trial = null) {
  const reply = await net.once("GET", "messages"); // without a connection they come with the next page
  for (const { number, text } of reply.body.messages ?? []) {
    if (told.has(number)) continue;
    prose("told", text);
    show("told");
    await clicked($("told-go"));
    told.add(number);
    net.log("message", trial, { number });
    await net.flushEvents();
  }
}
