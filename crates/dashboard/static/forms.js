// Forms: errors lead to their fields, and nothing typed is lost.
"use strict";

// Values that were typed into forms and not saved, by form. They stay in this tab and end with it.
const DRAFTS_KEY = "tributary-drafts";
// Secrets are never stored in the browser.
const SECRET = /^credentials\.|(key|secret|password|token)$/i;
const NO_VALUE = ["button", "file", "image", "password", "reset", "submit"];

const draftForms = () => [...document.querySelectorAll("form[data-draft]")];
const formKey = (form) => new URL(form.getAttribute("action") || location.href, location.href).pathname;
const isKept = (field) => field.name && !NO_VALUE.includes(field.type) && !SECRET.test(field.name);
const isTick = (field) => field.type === "checkbox" || field.type === "radio";

function valuesOf(form) {
  return [...form.elements].filter(isKept).map((field) => [field.name, isTick(field) ? field.checked : field.value]);
}

// Fills in the typed values. Includes the version that the form was opened with, so that the server
// notices changes by others.
function fill(form, values) {
  const byName = Map.groupBy(values, ([name]) => name);
  for (const field of [...form.elements].filter(isKept)) {
    const value = byName.get(field.name)?.shift()?.[1];
    if (value === undefined) continue;
    if (isTick(field)) field.checked = value;
    else field.value = value;
  }
}

function readDrafts() {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFTS_KEY)) ?? {};
  } catch {
    return {};
  }
}

function writeDrafts(drafts) {
  try {
    sessionStorage.setItem(DRAFTS_KEY, JSON.stringify(drafts));
  } catch {
    // The storage is full: the form is submitted in any case.
  }
}

// The state of each form when it was opened.
const opened = new WeakMap();
const state = (form) => JSON.stringify(valuesOf(form));
const isChanged = (form) => opened.get(form) !== state(form);

// The server shows a rejected form again with the typed values, so it has unsaved changes.
const isRejected = (form) => form.querySelector("[aria-invalid], .saved, [role=alert]") !== null;

function showRestored(form) {
  const note = document.createElement("div");
  note.className = "banner banner-notice restored";
  note.setAttribute("role", "status");
  const text = document.createElement("span");
  text.textContent = "Restored what you typed here. It is not saved yet.";
  const discard = document.createElement("button");
  discard.type = "button";
  discard.className = "button button-quiet";
  discard.textContent = "Discard it";
  discard.addEventListener("click", () => {
    form.reset();
    note.remove();
  });
  note.append(text, discard);
  form.prepend(note);
}

function restoreDrafts() {
  const drafts = readDrafts();
  // A page that shows a secret once is the response to a form that was saved.
  const isSaved = new URLSearchParams(location.search).has("notice") || document.querySelector("[data-shown-once]") !== null;
  for (const [key, draft] of Object.entries(drafts)) {
    if (draft.isSubmitted && isSaved) delete drafts[key];
  }
  for (const form of draftForms()) {
    opened.set(form, isRejected(form) ? "" : state(form));
    const draft = drafts[formKey(form)];
    delete drafts[formKey(form)];
    if (!draft || isRejected(form) || JSON.stringify(draft.values) === state(form)) continue;
    fill(form, draft.values);
    showRestored(form);
  }
  writeDrafts(drafts);
  const lost = Object.values(drafts).find((draft) => draft.isSubmitted && draft.page !== location.pathname + location.search);
  if (lost && document.body.classList.contains("app")) toast("A form was not saved.", { text: "Return to it", href: lost.page });
}

let isLeaving = false;
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  if (formKey(form) === "/sign-out") {
    sessionStorage.removeItem(DRAFTS_KEY);
  } else {
    const drafts = readDrafts();
    for (const one of draftForms()) {
      if (one !== form && !isChanged(one)) continue;
      drafts[formKey(one)] = { page: location.pathname + location.search, isSubmitted: one === form, values: valuesOf(one) };
    }
    writeDrafts(drafts);
  }
  isLeaving = true;
});
window.addEventListener("pageshow", () => { isLeaving = false; });
window.addEventListener("beforeunload", (event) => {
  if (!isLeaving && draftForms().some(isChanged)) event.preventDefault();
});

// Finds the field that an error is about. The error may name a part of it, such as one line.
function fieldOf(path, scope) {
  let name = path;
  while (name) {
    const field = scope.querySelector(`[name="${CSS.escape(name)}"]`);
    if (field) return field;
    name = name.replace(/(\.[^.[\]]*|\[\d+\])$/, "") === name ? "" : name.replace(/(\.[^.[\]]*|\[\d+\])$/, "");
  }
  return null;
}

function focusField(field) {
  for (let fold = field.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  field.focus();
}

// Errors name the fields of the REST API. People get the label of the form and a way to the field.
function linkErrors() {
  const links = [...document.querySelectorAll("a[data-field]")];
  for (const link of links) {
    const field = fieldOf(link.dataset.field, link.closest("form") ?? document);
    const label = field?.labels?.[0]?.textContent || field?.getAttribute("aria-label");
    if (label) link.textContent = label.trim();
    link.addEventListener("click", (event) => {
      if (!field) return;
      event.preventDefault();
      focusField(field);
    });
  }
  const first = links[0] && fieldOf(links[0].dataset.field, links[0].closest("form") ?? document);
  if (first) focusField(first);
}

restoreDrafts();
linkErrors();
