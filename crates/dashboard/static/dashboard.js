// The few things that HTML cannot do: copying, showing a password, asking again before something is gone, tooltips.
// Every page works without them; their buttons appear only where this runs.
"use strict";

const COPIED_MS = 2000;
const NARROW = window.matchMedia("(max-width: 48rem)");

// navigator.clipboard is there with TLS and on the own machine only; the older way works elsewhere.
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
  status.textContent = copied ? button.dataset.copied : "The text is selected; copy it with your keyboard.";
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
    button.setAttribute("aria-label", `${button.textContent} the password`);
  };
  button.addEventListener("click", () => show(input.type === "password"));
  // Browsers remember what was typed into fields that are not for passwords.
  input.form.addEventListener("submit", () => show(false));
}

// Parts of a page come and go; what they need is looked for again in each.
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
  // A menu closes when something else is clicked.
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

// A file is read into a field, where it can be looked at before it is sent.
document.addEventListener("change", async (event) => {
  const field = event.target.dataset?.fill;
  const file = event.target.files?.[0];
  if (field && file) document.getElementById(field).value = await file.text();
});

// A second click would find the link used, and the page with the key would be lost.
for (const form of document.querySelectorAll("[data-once]")) {
  const button = form.querySelector("[type=submit]");
  form.addEventListener("submit", () => { button.disabled = true; });
  window.addEventListener("pageshow", () => { button.disabled = false; });
}

// What is shown once came as the answer to a form. Asking for the page again must not send that form again.
const shownOnce = document.querySelector("[data-shown-once]");
if (shownOnce) window.history.replaceState(null, "", shownOnce.dataset.shownOnce || window.location.href);

// On a small screen the menu is closed at first.
const side = document.querySelector("details.side");
if (side && NARROW.matches) side.open = false;

// The words of a chart's place, beside the pointer or the focus.
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
