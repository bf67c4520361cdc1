// Does the device fit the study? Checked before the participant is asked anything; nothing is sent or stored.

import { word } from "./dom.js";
import { keeps } from "./store.js";

const BROWSERS = [[/Edg\/(\d+)/, "Edge"], [/OPR\/(\d+)/, "Opera"], [/SamsungBrowser\/(\d+)/, "Samsung"], [/Firefox\/(\d+)/, "Firefox"],
  [/(?:Chrome|CriOS)\/(\d+)/, "Chrome"], [/Version\/(\d+).*Safari/, "Safari"]];
const SYSTEMS = [[/Windows/, "Windows"], [/Android/, "Android"], [/iPhone|iPad|iPod/, "iOS"], [/CrOS/, "ChromeOS"], [/Mac OS X/, "macOS"], [/Linux/, "Linux"]];

export const touchOnly = () => matchMedia("(hover: none) and (pointer: coarse)").matches;

// Why it does not, as a sentence; null if it does.
export async function unfit({ width, height, touch }) {
  if (!touch && touchOnly()) return word("gate_phone");
  if (innerWidth < width || innerHeight < height) return word("gate_small", { width, height });
  return (await keeps()) ? null : word("gate_storage");
}

// Families and sizes only: the browser's description of itself would be a fingerprint.
export function device() {
  const [pattern, browser] = BROWSERS.find(([test]) => test.test(navigator.userAgent)) ?? [null, "other"];
  const [, system] = SYSTEMS.find(([test]) => test.test(navigator.userAgent)) ?? [null, "other"];
  const major = pattern ? Number(pattern.exec(navigator.userAgent)[1]) : null;
  return { browser, major, system, width: innerWidth, height: innerHeight, dpr: devicePixelRatio, touch: touchOnly() };
}
