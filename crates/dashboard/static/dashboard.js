// The few things that HTML cannot do: copying, showing a password, sending a form only once.
// Every page works without them; their buttons appear only where this runs.
"use strict";

const COPIED_MS = 2000;

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

for (const button of document.querySelectorAll("[data-copy]")) {
  const label = button.textContent;
  let timer;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const copied = await copy(document.getElementById(button.dataset.copy));
    const status = document.getElementById("status");
    status.textContent = copied ? button.dataset.copied : "The text is selected; copy it with your keyboard.";
    button.textContent = copied ? "Copied" : "Selected";
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = label;
      status.textContent = "";
    }, COPIED_MS);
  });
}

for (const button of document.querySelectorAll("[data-reveal]")) {
  const input = document.getElementById(button.dataset.reveal);
  const show = (shown) => {
    input.type = shown ? "text" : "password";
    button.textContent = shown ? "Hide" : "Show";
    button.setAttribute("aria-label", `${button.textContent} the password`);
  };
  button.hidden = false;
  button.addEventListener("click", () => show(input.type === "password"));
  // Browsers remember what was typed into fields that are not for passwords.
  input.form.addEventListener("submit", () => show(false));
}

// A second click would find the link used, and the page with the key would be lost.
for (const form of document.querySelectorAll("[data-once]")) {
  const button = form.querySelector("[type=submit]");
  form.addEventListener("submit", () => { button.disabled = true; });
  window.addEventListener("pageshow", () => { button.disabled = false; });
}
