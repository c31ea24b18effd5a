// Passkeys: asks the browser for a new passkey, or for the use of one, and submits the answer with the button's form.
"use strict";

// As long as the server accepts a challenge.
const PASSKEY_TIMEOUT_MS = 5 * 60 * 1000;

const bytesOf = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const textOf = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const wordsOf = (text) => text.split(" ").filter((word) => word !== "");
const descriptorsOf = (button) => wordsOf(button.dataset.credentials).map((id) => ({ type: "public-key", id: bytesOf(id) }));

async function fetchChallenge() {
  const response = await fetch("/passkey/challenge", { method: "POST" });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response.json();
}

async function createPasskey(button) {
  const { host, user, algorithms } = button.dataset;
  const email = button.dataset.email || button.form.elements.email.value;
  const issued = await fetchChallenge();
  const { rawId, response } = await navigator.credentials.create({
    publicKey: {
      challenge: bytesOf(issued.challenge),
      rp: { id: host, name: "Tributary" },
      user: { id: bytesOf(user || issued.user), name: email, displayName: email },
      pubKeyCredParams: wordsOf(algorithms).map((alg) => ({ type: "public-key", alg: Number(alg) })),
      excludeCredentials: descriptorsOf(button),
      authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
      attestation: "none",
      timeout: PASSKEY_TIMEOUT_MS,
    },
  });
  return { credential: rawId, clientData: response.clientDataJSON, attestation: response.attestationObject };
}

async function takePasskey(button) {
  const issued = await fetchChallenge();
  const { rawId, response } = await navigator.credentials.get({
    publicKey: {
      challenge: bytesOf(issued.challenge),
      rpId: button.dataset.host,
      allowCredentials: descriptorsOf(button),
      userVerification: "required",
      timeout: PASSKEY_TIMEOUT_MS,
    },
  });
  const { clientDataJSON, authenticatorData, signature, userHandle } = response;
  return { credential: rawId, clientData: clientDataJSON, authenticator: authenticatorData, signature, user: userHandle ?? new ArrayBuffer(0) };
}

// What went wrong, by the name of the error.
const PASSKEY_FAULTS = {
  NotAllowedError: "No passkey was used. Try again.",
  InvalidStateError: "This device has a passkey for your account already.",
  SecurityError: "Open the dashboard at its own address to use passkeys.",
};

function showFault(button, text) {
  const fault = button.parentElement.querySelector("[data-passkey-fault]") ?? document.createElement("p");
  fault.className = "fault";
  fault.dataset.passkeyFault = "";
  fault.setAttribute("role", "alert");
  fault.textContent = text;
  button.before(fault);
}

async function submitPasskey(button) {
  const { form } = button;
  const email = form.elements.email;
  if (button.dataset.passkey === "create" && email && !email.reportValidity()) return;
  button.disabled = true;
  try {
    const answer = await (button.dataset.passkey === "create" ? createPasskey(button) : takePasskey(button));
    for (const [name, buffer] of Object.entries(answer)) {
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = `passkey.${name}`;
      field.value = textOf(buffer);
      form.append(field);
    }
    // The passkey replaces the form's other fields.
    form.noValidate = true;
    form.requestSubmit();
  } catch (error) {
    button.disabled = false;
    showFault(button, PASSKEY_FAULTS[error.name] ?? `The browser could not use a passkey. ${error.message}`);
  }
}

for (const button of document.querySelectorAll("[data-passkey]")) {
  const hint = button.parentElement.querySelector("[data-passkey-hint]");
  if (window.PublicKeyCredential) {
    hint.remove();
    button.hidden = false;
    button.addEventListener("click", () => submitPasskey(button));
  } else {
    hint.textContent = "This browser does not support passkeys.";
  }
}
