// A mark on the image: a point, or cells under a brush. Loaded by studies whose responses are places only.

import { $, make, pictureUrl, word } from "./dom.js";

const SIDE = 32; // cells along each side of the image, as study/places/grid.py
const RADIUS = 1.6; // cells, as study/places/grid.py
const STEP = 1 / SIDE, SMALL = 1 / 200; // of an arrow key, and with Shift
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

let pad = null;

// Returns what gives the mark when the response is confirmed.
export async function offer(trial, stretch) {
  pad ??= new Pad();
  if (!trial.label?.samples.length) delete $("trial").dataset.explained; // after practice's heatmap
  openAfterwards(stretch);
  await pad.begin(trial.place ?? "", trial.index, stretch.net);
  return trial.place && (() => ({ place: pad.text }));
}

class Pad {
  constructor() {
    document.head.append(make("link", { rel: "stylesheet", href: "/runner/place.css" }));
    this.canvas = make("canvas", { width: SIDE, height: SIDE });
    this.cursor = make("span", { className: "place-mark" });
    this.status = make("span", { className: "place-status", role: "status" });
    this.surface = make("div", { id: "place", tabIndex: 0, role: "application", ariaLabel: word("place"), translate: false }, this.canvas, this.cursor);
    this.undo = make("button", { type: "button", textContent: word("place_undo") });
    this.clear = make("button", { type: "button", textContent: word("place_clear") });
    this.tools = make("div", { className: "place-tools" }, this.undo, this.clear);
    $("target").after(this.surface, this.status);
    $("answers").before(this.tools);
    this.undo.onclick = () => this.restore(this.history.pop());
    this.clear.onclick = () => { this.remember(); this.restore(new Uint8Array(SIDE * SIDE)); };
    $("target").addEventListener("load", () => this.fit());
    // Nothing is confirmed before there is a mark.
    $("answers").addEventListener("click", (event) => { if (this.waits) { event.stopImmediatePropagation(); this.refuse(); } }, true);
    addEventListener("keydown", (event) => this.press(event), true);
    this.listen();
  }

  // A mark that was not confirmed survives a reload.
  async begin(kind, index, net) {
    const kept = this.net ? {} : await net.kept("place", {});
    Object.assign(this, { kind, index, net, x: 0.5, y: 0.5, placed: false, pressed: false, history: [],
      cells: new Uint8Array(SIDE * SIDE) }, kept.index === index && kept);
    $("trial").dataset.place = kind;
    this.status.textContent = "";
    if (document.body.dataset.api) this.mark(); // a draft goes on without a hand
    this.draw();
  }

  get brushes() { return this.kind === "cells"; }
  get isOpen() { return this.kind && !$("trial").hidden && $("trial").dataset.phase === "shown"; }
  get waits() { return this.kind && !(this.brushes ? this.cells.includes(1) : this.placed); }

  // As study/places/marks.py reads it.
  get text() {
    if (!this.brushes) return `${this.x.toFixed(5)},${this.y.toFixed(5)}`;
    const digit = (i) => parseInt(this.cells.subarray(4 * i, 4 * i + 4).join(""), 2).toString(16);
    return Array.from({ length: this.cells.length / 4 }, (_, i) => digit(i)).join("");
  }

  keep() {
    const { index, x, y, placed, cells } = this;
    this.net.keep("place", { index, x, y, placed, cells });
  }

  // The surface covers the image itself, not the square around it.
  fit() {
    const { naturalWidth, naturalHeight } = $("target"), aspect = naturalWidth / naturalHeight || 1;
    this.surface.style.width = `calc(var(--side) * ${Math.min(1, aspect)})`;
    this.surface.style.height = `calc(var(--side) * ${Math.min(1, 1 / aspect)})`;
  }

  listen() {
    const follow = (event) => {
      const box = this.surface.getBoundingClientRect();
      this.go((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height, this.pressed);
    };
    this.surface.onpointerdown = (event) => {
      if (!this.isOpen || event.button) return;
      this.surface.setPointerCapture(event.pointerId);
      this.remember();
      this.fresh = this.pressed = true;
      follow(event);
    };
    this.surface.onpointermove = (event) => {
      if (!this.isOpen || !(this.pressed || this.brushes)) return;
      for (const one of event.getCoalescedEvents?.() ?? []) follow(one);
      follow(event);
    };
    this.surface.onpointerup = this.surface.onpointercancel = () => { this.pressed = false; this.keep(); };
  }

  // Moves the mark or the brush; a brush that is down covers the way.
  go(x, y, down) {
    const limit = (value) => Math.min(Math.max(value, 0), 1), [fromX, fromY] = this.fresh ? [x, y] : [this.x, this.y];
    this.fresh = false;
    const steps = Math.ceil(Math.hypot(x - fromX, y - fromY) * SIDE * 2) || 1;
    for (let step = 1; step <= steps; step++) {
      this.x = limit(fromX + (x - fromX) * step / steps);
      this.y = limit(fromY + (y - fromY) * step / steps);
      if (down) this.mark();
    }
    this.draw();
  }

  mark() {
    this.placed = true;
    $("slow").textContent = "";
    if (!this.brushes) return;
    for (let row = 0; row < SIDE; row++) for (let column = 0; column < SIDE; column++) {
      if (Math.hypot(column + 0.5 - this.x * SIDE, row + 0.5 - this.y * SIDE) <= RADIUS) this.cells[row * SIDE + column] = 1;
    }
  }

  remember() { if (this.brushes) this.history.push(this.cells.slice()); }

  restore(cells) {
    if (cells) this.cells = cells;
    this.keep();
    this.draw();
  }

  draw() {
    const image = new ImageData(SIDE, SIDE);
    this.cells.forEach((on, i) => { if (on) image.data.set([255, 196, 0, 255], 4 * i); });
    this.canvas.getContext("2d").putImageData(image, 0, 0);
    Object.assign(this.cursor.style, { left: `${100 * this.x}%`, top: `${100 * this.y}%` });
    this.cursor.hidden = !this.placed && !this.brushes;
    this.undo.disabled = !this.history.length;
    this.clear.disabled = !this.cells.includes(1);
    this.tools.hidden = !this.brushes;
    $("trial").toggleAttribute("data-marked", !this.waits);
  }

  // All keys but those that move between elements are the pad's.
  press(event) {
    if (!this.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event, onButton = document.activeElement?.matches("button, summary") && (key === "Enter" || key === " ");
    if (key !== "Tab" && key !== "Shift") event.stopImmediatePropagation();
    if (onButton || !(key in ARROWS || key === " " || key === "Enter")) return;
    event.preventDefault();
    if (key === "Enter") return void (event.repeat || $("answers").firstElementChild?.click());
    if (key === " ") {
      if (!event.repeat) this.remember();
      this.go(this.x, this.y, true);
    } else {
      const [right, down] = ARROWS[key], step = event.shiftKey ? SMALL : STEP;
      this.go(this.x + right * step, this.y + down * step, !this.brushes);
    }
    this.keep();
    this.tell();
  }

  tell() {
    const percent = (share) => Math.round(100 * share), share = this.cells.reduce((sum, on) => sum + on, 0) / this.cells.length;
    this.status.textContent = word("place_at", { x: percent(this.x), y: percent(this.y), share: percent(share) });
  }

  refuse() { $("slow").textContent = word("place_missing"); }
}

// After a practice trial, the heatmap is shown next to the image; its name comes with the reply.
function openAfterwards(stretch) {
  if (stretch.opens) return;
  stretch.opens = true;
  const plain = stretch.feedback;
  stretch.feedback = async () => {
    await stretch.until(() => stretch.waiting === 0);
    const { reveal } = stretch.last.body;
    if (reveal) {
      $("map").alt = word("picture_map", { number: $("trial").dataset.number });
      $("map").src = pictureUrl(stretch.study, reveal);
      $("map-legend").textContent = stretch.state.texts.map_legend;
      await $("map").decode().catch(() => {});
      $("map").hidden = false;
      $("trial").dataset.explained = "";
    }
    await plain.call(stretch);
  };
}
