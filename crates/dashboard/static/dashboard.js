// Enhancements: copy buttons, show password, confirmation dialogs, toasts, and charts that can be explored.
// Every page works without them; their buttons appear only when this script runs.
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

// A message that does not move the page. It stays while the pointer or the focus is on it.
const TOAST_MS = 7000;

function toast(text, link, closed = () => {}) {
  const box = document.createElement("div");
  box.className = "toast";
  const words = document.createElement("span");
  words.textContent = text;
  box.append(words);
  if (link) {
    const way = document.createElement("a");
    way.href = link.href;
    way.textContent = link.text;
    box.append(way);
  }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "toast-close";
  close.textContent = "✕";
  close.setAttribute("aria-label", "Close message");
  close.addEventListener("click", () => {
    box.remove();
    closed();
  });
  box.append(close);
  document.getElementById("toasts").append(box);
  const hide = () => {
    if (box.matches(":hover, :focus-within")) setTimeout(hide, TOAST_MS);
    else box.remove();
  };
  if (!link) setTimeout(hide, TOAST_MS);
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
  for (const button of root.querySelectorAll("[data-copy], [data-pause]")) button.hidden = false;
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

// The arrow keys move within an open menu.
document.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const menu = event.target.closest?.("details.drop[open]");
  if (!menu || !(event.key in steps) || event.target.matches("input, select, textarea")) return;
  const entries = [...menu.querySelectorAll(".drop-menu a, .drop-menu button")];
  if (entries.length === 0) return;
  event.preventDefault();
  const at = entries.indexOf(document.activeElement);
  const next = at < 0 && event.key === "ArrowUp" ? entries.length - 1 : at + steps[event.key];
  entries[(next + entries.length) % entries.length].focus();
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

// The result of the last form becomes a toast, once: a reload or a bookmark must not repeat it.
const notice = document.querySelector("[data-notice]");
if (notice) {
  toast(notice.textContent);
  notice.remove();
  const url = new URL(location.href);
  url.searchParams.delete("notice");
  window.addEventListener("load", () => window.history.replaceState(null, "", url));
}

// Pauses the polling of a live table.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-pause]");
  if (!button) return;
  const isPaused = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(isPaused));
  button.textContent = isPaused ? "Resume" : "Pause";
  const live = document.getElementById(button.dataset.pause);
  live.classList.toggle("is-paused", isPaused);
  live.querySelector("[data-state]").textContent = isPaused ? "paused" : "live";
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.matches("[data-live]") && document.querySelector(".is-paused")) event.preventDefault();
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

// On small screens the menu starts closed. On wide screens it is always open, because its button is hidden there.
const side = document.querySelector("details.side");
if (side) {
  side.open = !NARROW.matches;
  NARROW.addEventListener("change", () => { side.open = !NARROW.matches; });
}

// Keeps the scroll position when a link or form loads the same page again, such as a sorted table.
const SCROLL_KEY = "tributary-scroll";

function saveScroll() {
  const tables = [...document.querySelectorAll("[data-keep-scroll]")].map((one) => [one.scrollLeft, one.scrollTop]);
  sessionStorage.setItem(SCROLL_KEY, JSON.stringify({ path: location.pathname, top: window.scrollY, tables }));
}

function restoreScroll() {
  const saved = JSON.parse(sessionStorage.getItem(SCROLL_KEY) ?? "null");
  sessionStorage.removeItem(SCROLL_KEY);
  if (saved?.path !== location.pathname) return;
  window.scrollTo(0, saved.top);
  document.querySelectorAll("[data-keep-scroll]").forEach((one, index) => one.scrollTo(...(saved.tables[index] ?? [0, 0])));
}

document.addEventListener("click", (event) => {
  if (event.target.closest?.("a[data-keep]")) saveScroll();
});
document.addEventListener("submit", (event) => {
  if (event.target.method === "get" && event.target.closest("main")) saveScroll();
});
window.addEventListener("load", restoreScroll);

// On a narrow screen, the column that a table is sorted by may be out of view, or below the fade at the edge.
const FADE_PX = 32;
function showSortedColumn() {
  for (const head of document.querySelectorAll('.wide [aria-sort="ascending"], .wide [aria-sort="descending"]')) {
    const frame = head.closest(".table");
    const names = frame.querySelector("thead th").offsetWidth;
    const begin = head.offsetLeft - names;
    const end = head.offsetLeft + head.offsetWidth + FADE_PX - frame.clientWidth;
    frame.scrollLeft = Math.min(Math.max(frame.scrollLeft, end), begin);
  }
}
window.addEventListener("load", showSortedColumn);

// A list in a form with [data-auto] applies at once if it was changed with the pointer. With the
// keyboard, every arrow key changes the list, so the button applies it.
let lastInput = "pointer";
document.addEventListener("keydown", () => { lastInput = "keyboard"; }, true);
document.addEventListener("pointerdown", () => { lastInput = "pointer"; }, true);
document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-auto]");
  if (form && event.target.matches("select") && lastInput === "pointer") form.requestSubmit();
});

// Charts: a tooltip that follows the pointer, the finger or the arrow keys, and zooming by dragging.
const DRAG_PX = 8;
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

function placeTip(mark) {
  tip.textContent = mark.dataset.tip;
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  // Beside the point, because the legend and the controls are above the chart.
  const right = document.documentElement.clientWidth - tip.offsetWidth - 8;
  const left = box.right + 8 <= right ? box.right + 8 : Math.max(8, box.left - tip.offsetWidth - 8);
  tip.style.left = `${Math.min(left, right) + window.scrollX}px`;
  tip.style.top = `${box.top + 8 + window.scrollY}px`;
}

function prepareChart(frame) {
  const columns = [...frame.querySelectorAll(".chart-column")];
  if (columns.length === 0) return;
  let active = -1;
  let dragFrom = null;
  const show = (index) => {
    columns[active]?.classList.remove("is-active");
    active = index;
    columns[active]?.classList.add("is-active");
    if (columns[active]) placeTip(columns[active]);
    else tip.hidden = true;
  };
  const at = (event) => {
    const box = columns[0].ownerSVGElement.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(columns.length - 1, Math.max(0, Math.floor(share * columns.length)));
  };
  const isInside = (event) => event.target.closest?.(".chart");
  const select = (index) => {
    const [first, last] = [Math.min(dragFrom.index, index), Math.max(dragFrom.index, index)];
    columns.forEach((column, place) => column.classList.toggle("is-selected", place >= first && place <= last));
    return [columns[first].dataset.from, columns[last].dataset.to];
  };
  frame.addEventListener("pointermove", (event) => {
    if (dragFrom && Math.abs(event.clientX - dragFrom.x) > DRAG_PX) dragFrom.days = select(at(event));
    if (isInside(event) || dragFrom) show(at(event));
  });
  frame.addEventListener("pointerdown", (event) => {
    if (!isInside(event)) return;
    show(at(event));
    // A finger that moves scrolls the page.
    if (frame.hasAttribute("data-zoom") && event.pointerType !== "touch") dragFrom = { x: event.clientX, index: at(event) };
  });
  window.addEventListener("pointerup", () => {
    const days = dragFrom?.days;
    dragFrom = null;
    if (!days) return;
    const url = new URL(location.href);
    url.searchParams.delete("range");
    url.searchParams.set("from", days[0]);
    url.searchParams.set("to", days[1]);
    saveScroll();
    location.assign(url);
  });
  window.addEventListener("pointercancel", () => { dragFrom = null; });
  // The tooltip stays after a tap or click, until the pointer leaves or the next tap is elsewhere.
  frame.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && !dragFrom && document.activeElement !== frame) show(-1);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!frame.contains(event.target)) show(-1);
  });
  frame.addEventListener("blur", () => show(-1));
  frame.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: active - 1, ArrowRight: active + 1, Home: 0, End: columns.length - 1 };
    if (event.key === "Escape") show(-1);
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(Math.min(columns.length - 1, Math.max(0, steps[event.key])));
    document.getElementById("status").textContent = columns[active].dataset.tip;
  });
}

for (const frame of document.querySelectorAll("[data-chart]")) prepareChart(frame);

// Shows only the fields that belong to the chosen values of the form's select elements, and those with
// an error.
function showChosen() {
  const chosen = Array.from(document.querySelectorAll("#topic, #channel, #type"), (select) => select.value);
  for (const part of document.querySelectorAll("[data-shown-for]")) {
    part.hidden = !part.querySelector("[aria-invalid]") && !part.dataset.shownFor.split(" ").some((value) => chosen.includes(value));
  }
}

document.addEventListener("change", showChosen);
window.addEventListener("pageshow", showChosen);

document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
prepare(document);
