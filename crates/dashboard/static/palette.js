// Comfort: command palette, keyboard shortcuts, ids on demand, and tables as cards on small screens.
"use strict";

const IDS_KEY = "tributary-ids";
const KEYS_KEY = "tributary-keys";
const SEQUENCE_MS = 1500;
// Rounded widths may differ by a pixel or two when a table is scrolled to its end.
const SCROLL_REST_PX = 4;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Ids of networks, campaigns and links are hidden until they are needed.
function showIds(shown) {
  document.documentElement.classList.toggle("show-ids", shown);
  localStorage.setItem(IDS_KEY, shown ? "on" : "off");
}
const idsAreShown = () => document.documentElement.classList.contains("show-ids");
showIds(localStorage.getItem(IDS_KEY) === "on");

// Single keys can be switched off for people who use speech input.
const keysAreOn = () => localStorage.getItem(KEYS_KEY) !== "off";

// SDKs create device ids as UUIDs. Any other text is more likely a user's id, and a page of a device
// that does not exist would not be found.
const DEVICE_ID = /^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i;

function searchCommands(text) {
  const links = [...document.querySelectorAll("[data-search]")];
  const isLast = (link) => link.dataset.search.match(/path|deviceId/) && !DEVICE_ID.test(text);
  links.sort((one, other) => Boolean(isLast(one)) - Boolean(isLast(other)));
  return links.map((link) => {
    const url = new URL(link.href);
    if (link.dataset.search === "path") {
      url.pathname += encodeURIComponent(text);
    } else {
      url.searchParams.set(link.dataset.search, text);
    }
    return { label: `${link.dataset.searchLabel} “${text}”`, run: () => location.assign(url) };
  });
}

// Collects what the page offers, so that a new menu entry is a command without further work.
function commands() {
  const follow = (link, label) => ({ label, key: link.dataset.key && `g ${link.dataset.key}`, run: () => link.click() });
  const all = (selector) => [...document.querySelectorAll(selector)];
  return [
    ...all("main [data-command]:not([hidden])").map((one) => follow(one, one.dataset.command || one.textContent.trim())),
    ...all(".side nav a").map((one) => follow(one, `Go to ${one.textContent.trim()}`)),
    ...all("[data-jump]").map((one) => ({ ...follow(one, one.dataset.jump), words: one.dataset.words })),
    ...all(".view-entry a").map((one) => follow(one, `View: ${one.textContent.trim()}`)),
    ...all("[data-share]").map((one) => follow(one, one.textContent.trim())),
    ...all(".app-menu a").map((one) => follow(one, one.dataset.app ? `App: ${one.dataset.app}` : one.textContent.trim())),
    ...all(".worlds a").map((one) => follow(one, `${one.textContent.trim()} data`)),
    ...all(".presets a").map((one) => follow(one, `Period: ${one.textContent.trim()}`)),
    { label: idsAreShown() ? "Hide ids" : "Show ids", key: "i", run: () => showIds(!idsAreShown()) },
    { label: "Keyboard shortcuts", key: "?", run: openHelp },
  ];
}

function openPalette() {
  if (document.querySelector("dialog[open]")) return;
  const list = element("ul", { id: "commands", role: "listbox" });
  list.setAttribute("aria-label", "Commands");
  const input = element("input", { type: "text", placeholder: "Go to a page, an app, a device or a user …", autocomplete: "off", role: "combobox" });
  for (const [name, value] of [["aria-label", "Command"], ["aria-expanded", "true"], ["aria-controls", "commands"]]) input.setAttribute(name, value);
  const dialog = element("dialog", { className: "palette" }, input, list);
  dialog.setAttribute("aria-label", "Command palette");
  const everything = commands();
  let shown = [];
  let active = 0;
  const run = (command) => {
    dialog.close();
    command.run();
  };
  const mark = (index) => {
    active = index;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === active)));
    list.children[active]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[active]?.id ?? "");
  };
  const filter = () => {
    const text = input.value.trim();
    const words = text.toLowerCase().split(/\s+/);
    shown = everything.filter((one) => words.every((word) => `${one.label} ${one.words ?? ""}`.toLowerCase().includes(word)));
    if (text) shown.push(...searchCommands(text));
    list.replaceChildren(...shown.map((command, index) => {
      const item = element("li", { id: `command-${index}`, role: "option" }, command.label);
      if (command.key) item.append(element("kbd", { textContent: command.key }));
      item.addEventListener("click", () => run(command));
      return item;
    }));
    mark(0);
  };
  input.addEventListener("input", filter);
  dialog.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && shown.length > 0) {
      event.preventDefault();
      mark((active + steps[event.key] + shown.length) % shown.length);
    }
    if (event.key === "Enter" && shown[active]) {
      event.preventDefault();
      run(shown[active]);
    }
  });
  showDialog(dialog);
  filter();
}

function showDialog(dialog) {
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
}

function openHelp() {
  if (document.querySelector("dialog[open]")) return;
  const menu = [...document.querySelectorAll(".side nav a[data-key]")];
  const rows = [
    ["Ctrl K or ⌘ K", "Command palette"], ["/", "Search or filter this page"], ["p", "Choose the period"],
    ["f", "Choose filters"], ["i", "Show or hide ids"],
    ...menu.map((link) => [`g ${link.dataset.key}`, `Go to ${link.textContent.trim()}`]), ["?", "This list"],
  ];
  const table = element("table", {}, element("tbody", {}, ...rows.map(([keys, what]) =>
    element("tr", {}, element("td", {}, element("kbd", { textContent: keys })), element("td", { textContent: what })))));
  const tick = element("input", { type: "checkbox", checked: keysAreOn() });
  tick.addEventListener("change", () => localStorage.setItem(KEYS_KEY, tick.checked ? "on" : "off"));
  const close = element("button", { type: "button", className: "button", textContent: "Close" });
  const title = element("h2", { id: "shortcuts", textContent: "Keyboard shortcuts" });
  const option = element("label", { className: "option" }, tick, element("span", { textContent: "Use single keys" }));
  const dialog = element("dialog", { className: "help" }, title, table, option, close);
  dialog.setAttribute("aria-labelledby", "shortcuts");
  close.addEventListener("click", () => dialog.close());
  showDialog(dialog);
}

function openMenu(name) {
  const menu = document.querySelector(`details[data-menu="${name}"]`);
  if (!menu) return;
  menu.open = true;
  menu.querySelector("a, input, select")?.focus();
}

function focusSearch() {
  const field = document.querySelector("main [role=search] input:not([type=hidden]), main input[type=search]");
  if (field) field.focus();
  else openPalette();
}

const SINGLE = { "/": focusSearch, "?": openHelp, i: () => showIds(!idsAreShown()), p: () => openMenu("period"), f: () => openMenu("filter") };
let sequence = 0;

document.addEventListener("keydown", (event) => {
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  const isTyping = event.target.closest?.("input, select, textarea, [contenteditable], dialog");
  if (isTyping || event.metaKey || event.ctrlKey || event.altKey || !keysAreOn()) return;
  if (Date.now() - sequence < SEQUENCE_MS) {
    sequence = 0;
    document.querySelector(`.side nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  if (event.key === "g") sequence = Date.now();
  if (!(event.key in SINGLE)) return;
  event.preventDefault();
  SINGLE[event.key]();
});

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-palette]")) openPalette();
});
for (const button of document.querySelectorAll("[data-palette]")) button.hidden = false;

// On small screens a row becomes a card, with the column's name beside each value. The roles keep it
// a table for screen readers.
function labelCells(root) {
  for (const table of root.querySelectorAll("table.as-cards")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    table.setAttribute("role", "table");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      let column = 0;
      for (const cell of row.cells) {
        const isHead = cell.tagName === "TH";
        cell.setAttribute("role", isHead ? (cell.scope === "row" ? "rowheader" : "columnheader") : "cell");
        // A cell that spans columns, such as "Total", needs no label, nor does a button with its name.
        const name = names[column] ?? "";
        const needsNone = cell.colSpan > 1 || cell.textContent.trim() === name;
        if (!cell.closest("thead")) cell.dataset.label = needsNone ? "" : name;
        column += cell.colSpan;
      }
    }
    for (const part of table.querySelectorAll("thead, tbody, tfoot")) part.setAttribute("role", "rowgroup");
  }
}
// Tells that a table has columns or rows out of view.
const cues = new WeakMap();

function cueText(hasColumns, hasRows) {
  if (hasColumns && hasRows) return "More rows and columns: scroll ↓ →";
  if (hasRows) return "More rows: scroll down ↓";
  return hasColumns ? "More columns: scroll sideways →" : "";
}

function showCue(table) {
  const hasColumns = table.scrollWidth - table.clientWidth - table.scrollLeft > SCROLL_REST_PX;
  const hasRows = table.scrollHeight - table.clientHeight - table.scrollTop > SCROLL_REST_PX;
  const text = cueText(hasColumns, hasRows);
  table.classList.toggle("has-more", hasColumns);
  let cue = cues.get(table);
  if (!cue && text) {
    cue = element("p", { className: "scroll-cue" });
    cue.setAttribute("aria-hidden", "true");
    cues.set(table, cue);
    table.after(cue);
  }
  if (cue) {
    cue.textContent = text;
    cue.hidden = text === "";
  }
}

function watchTables(root) {
  for (const table of root.querySelectorAll(".table")) {
    table.addEventListener("scroll", () => showCue(table), { passive: true });
    new ResizeObserver(() => showCue(table)).observe(table);
  }
}
document.addEventListener("htmx:load", (event) => watchTables(event.detail.elt));
watchTables(document);

document.addEventListener("htmx:load", (event) => labelCells(event.detail.elt.parentElement ?? event.detail.elt));
labelCells(document);
