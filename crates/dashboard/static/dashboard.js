// Enhancements: copy buttons, show password, confirmation dialogs and tooltips. Every page works
// without them; their buttons appear only when this script runs.
"use strict";

const COPIED_MS = 2000;
const NARROW = window.matchMedia("(max-width: 48rem)");

// navigator.clipboard requires TLS or localhost; execCommand is the fallback.
async function copy(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    return document.execCommand("copy");
  }
}

const copying = new WeakMap();

async function copyBy(button) {
  const label = copying.get(button)?.label ?? button.textContent;
  const copied = await copy(document.getElementById(button.dataset.copy));
  const status = document.getElementById("status");
  status.textContent = copied ? button.dataset.copied : "Text selected. Press Ctrl+C or ⌘C to copy it.";
  button.textContent = copied ? "Copied" : "Selected";
  clearTimeout(copying.get(button)?.timer);
  const timer = setTimeout(() => {
    button.textContent = label;
    status.textContent = "";
  }, COPIED_MS);
  copying.set(button, { label, timer });
}

function reveal(button) {
  const input = document.getElementById(button.dataset.reveal);
  const show = (shown) => {
    input.type = shown ? "text" : "password";
    button.textContent = shown ? "Hide" : "Show";
    button.setAttribute("aria-label", `${button.textContent} password`);
  };
  button.addEventListener("click", () => show(input.type === "password"));
  // Turn it back into a password field, because browsers remember the values of other fields.
  input.form.addEventListener("submit", () => show(false));
}

// Runs for the page and for each fragment that htmx loads.
function prepare(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
  for (const button of root.querySelectorAll("[data-reveal]")) {
    button.hidden = false;
    reveal(button);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copyBy(button);
  // Close open menus on a click elsewhere.
  for (const menu of document.querySelectorAll("details.drop[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.drop[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
}, true);

// Copies a file into a text field, so that it can be checked before it is submitted.
document.addEventListener("change", async (event) => {
  const field = event.target.dataset?.fill;
  const file = event.target.files?.[0];
  if (field && file) document.getElementById(field).value = await file.text();
});

// Prevents a second submission: the setup link would already be used, and the page that shows the
// key would be lost.
for (const form of document.querySelectorAll("[data-once]")) {
  const button = form.querySelector("[type=submit]");
  form.addEventListener("submit", () => { button.disabled = true; });
  window.addEventListener("pageshow", () => { button.disabled = false; });
}

// A page that shows a secret once is the response to a form. Reloading the page must not submit the
// form again.
const shownOnce = document.querySelector("[data-shown-once]");
if (shownOnce) window.history.replaceState(null, "", shownOnce.dataset.shownOnce || window.location.href);

// On small screens the menu starts closed.
const side = document.querySelector("details.side");
if (side && NARROW.matches) side.open = false;

// Chart tooltip beside the pointer or focus.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

function showTip(mark) {
  if (!mark) {
    tip.hidden = true;
    return;
  }
  tip.textContent = mark.dataset.tip;
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${Math.max(8, box.top - tip.offsetHeight - 8) + window.scrollY}px`;
}

document.addEventListener("pointerover", (event) => showTip(event.target.closest?.("[data-tip]")));
document.addEventListener("focusin", (event) => showTip(event.target.closest?.("[data-tip]")));

document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
