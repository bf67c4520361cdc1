"""Folders that are dropped on an uploader keep their names, which are the classes of their images.

A browser gives a page the tree of a folder that is dropped on it. Streamlit's uploader takes the files from it and
leaves their folders out; a folder that is chosen by a click keeps them, as the ``webkitRelativePath`` of each file. The
script on this page reads the tree of a dropped folder and gives it to the uploader as a chosen one.
"""

from __future__ import annotations

import streamlit as st

_JS = """
const ZONE = "[data-testid=stFileUploaderDropzone]";
const list = async (folder) => { // a reader gives at most 100 entries at a time
  const reader = folder.createReader(), entries = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return entries;
    entries.push(...some);
  }
};
const read = async (entry) => {
  if (entry.name.startsWith(".")) return [];
  if (entry.isDirectory) {
    const files = [];
    for (const one of await list(entry)) files.push(...await read(one));
    return files;
  }
  const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
  Object.defineProperty(file, "webkitRelativePath", { value: entry.fullPath.slice(1) });
  return [file];
};
const give = (input, files) => {
  Object.defineProperty(input, "files", { value: files, configurable: true });
  input.dispatchEvent(new Event("change", { bubbles: true }));
  delete input.files; // the browser's own again
};
export default function ({ parentElement }) {
  const status = parentElement.querySelector("[role=status]");
  status.drops?.abort(); // of the run before
  status.drops = new AbortController();
  document.addEventListener("drop", async (event) => {
    const input = event.target.closest?.(ZONE)?.querySelector("input[type=file][multiple]");
    const entries = [...event.dataTransfer?.items ?? []].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (!input || !entries.some((entry) => entry.isDirectory)) return;
    event.preventDefault();
    event.stopPropagation();
    status.textContent = "Reading the folder …";
    try {
      const files = [];
      for (const entry of entries) files.push(...await read(entry));
      give(input, files);
      status.textContent = files.length ? "" : "The folder is empty.";
    } catch (error) {
      status.textContent = `The folder cannot be read (${error.message}). Click to choose it, or drop a zip of it.`;
    }
  }, { capture: true, signal: status.drops.signal });
  return () => status.drops.abort();
}
"""
_CSS = """
p { margin: 0; color: var(--st-text-color);
  font: .875rem/1.4 var(--st-font); }
"""


def accept_folders() -> None:
    """Let the uploaders of this page that take several files keep the folders that are dropped on them."""
    component = st.components.v2.component("foretell_dropping", html='<p role="status"></p>', css=_CSS, js=_JS)
    component(key="library_dropping")
