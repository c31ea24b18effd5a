// Forms: errors lead to their fields, and nothing typed is lost.
"use strict";

// Values that were typed into forms and not saved, by form. They stay in this tab and end with it.
const DRAFTS_KEY = "tributary-drafts";
// Secrets are never stored in the browser.
const SECRET = /^credentials\.|^url$|(key|secret|password|token|webhookUrl)$/i;
const NO_VALUE = ["button", "file", "image", "password", "reset", "submit"];

const draftForms = () => [...document.querySelectorAll("form[data-draft]")];
const formKey = (form) => new URL(form.getAttribute("action") || location.href, location.href).pathname;
const isKept = (field) => field.name && !NO_VALUE.includes(field.type) && !SECRET.test(field.name);
const isTick = (field) => field.type === "checkbox" || field.type === "radio";

function valuesOf(form) {
  return [...form.elements].filter(isKept).map((field) => [field.name, isTick(field) ? field.checked : field.value]);
}

// Fills in what was typed. Of the hidden fields, only the version that the form was opened with is
// restored, so that the server notices changes by others.
function fill(form, values) {
  const byName = Map.groupBy(values, ([name]) => name);
  for (const field of [...form.elements].filter(isKept)) {
    if (field.type === "hidden" && field.name !== "tag") continue;
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

let isLeaving = false;

// The state of each form when it was opened.
const opened = new WeakMap();
const state = (form) => JSON.stringify(valuesOf(form));
const isChanged = (form) => opened.get(form) !== state(form);

// The server filled in this form from what was submitted, so it has unsaved changes.
const isRejected = (form) => form.hasAttribute("data-rendered") || form.querySelector("[aria-invalid], .saved, [role=alert]") !== null;
const isAnswer = document.body.hasAttribute("data-answer");

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
    isLeaving = true;
    location.reload();
  });
  note.append(text, discard);
  form.prepend(note);
}

function restoreDrafts() {
  const drafts = readDrafts();
  // A page that shows a secret once is the response to a form that was saved.
  const isSaved = new URLSearchParams(location.search).has("notice") || document.querySelector("[data-shown-once]") !== null;
  for (const [key, draft] of Object.entries(drafts)) {
    const isForeign = draft.user !== document.body.dataset.user;
    if (isForeign || (draft.isSubmitted && isSaved)) delete drafts[key];
  }
  for (const form of draftForms()) {
    opened.set(form, isRejected(form) ? "" : state(form));
    const draft = drafts[formKey(form)];
    delete drafts[formKey(form)];
    if (!draft || isRejected(form) || (isAnswer && draft.isSubmitted) || JSON.stringify(draft.values) === state(form)) continue;
    fill(form, draft.values);
    showRestored(form);
  }
  writeDrafts(drafts);
  const isHere = (draft) => draft.page === location.pathname + location.search;
  const lost = Object.entries(drafts).find(([, draft]) => (draft.isSubmitted || draft.isLost) && !isHere(draft));
  const isContinued = document.querySelector("form[data-continues]") !== null;
  if (lost && !isContinued && document.body.classList.contains("app")) toast("A form was not saved.", { text: "Return to it", href: lost[1].page }, () => forget(lost[0]));
}

function forget(key) {
  const drafts = readDrafts();
  delete drafts[key];
  writeDrafts(drafts);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  // This form continues one that was submitted before, whose draft stays as it is.
  if (form.hasAttribute("data-continues")) {
    isLeaving = true;
    return;
  }
  if (formKey(form) === "/sign-out") {
    sessionStorage.removeItem(DRAFTS_KEY);
  } else {
    const drafts = readDrafts();
    for (const draft of Object.values(drafts)) {
      draft.isLost ||= draft.isSubmitted;
      draft.isSubmitted = false;
    }
    for (const one of draftForms()) {
      if (one !== form && !isChanged(one)) continue;
      const page = location.pathname + location.search;
      drafts[formKey(one)] = { user: document.body.dataset.user, page, isSubmitted: one === form, values: valuesOf(one) };
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
