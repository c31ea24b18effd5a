// Walks through accounts in a browser with a virtual authenticator. One person, the guest, goes the whole way: invitation,
// passkey without a password, authenticator app, single sign-on, sessions, and removal. Passkeys need a host name, so the
// server's is localhost.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { CLIENT_ID, CLIENT_SECRET, Provider } from "./provider.mjs";
import { PASSWORD, Service, inspectPage, openBrowser } from "./support.mjs";

const GUEST = "guest@example.com";
const COLLEAGUE = "colleague@example.com";
const STEP_MS = 30_000;
// Expected console errors: 4xx responses.
const EXPECTED_ERROR = /status of (4\d\d)/;

let service, provider, browser, owner, guest, signInUrl;
const problems = [];

/** A browser with its own cookies, and a device that keeps passkeys and verifies its user. */
class Person {
  static async start() {
    const person = new Person();
    person.context = await browser.newContext({ reducedMotion: "reduce" });
    const page = await person.context.newPage();
    person.page = page;
    page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !EXPECTED_ERROR.test(message.text())) problems.push(`${page.url()}: ${message.text()}`);
    });
    page.on("dialog", (dialog) => dialog.accept());
    return person;
  }

  async addDevice(transport = "internal") {
    if (!this.cdp) {
      this.cdp = await this.context.newCDPSession(this.page);
      await this.cdp.send("WebAuthn.enable");
    }
    const options = { protocol: "ctap2", transport, hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
    this.device = (await this.cdp.send("WebAuthn.addVirtualAuthenticator", { options })).authenticatorId;
  }

  // Whether the device is touched when it asks for it.
  setPresent(authenticatorId, enabled) {
    return this.cdp.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId, enabled });
  }

  setVerified(isUserVerified) {
    return this.cdp.send("WebAuthn.setUserVerified", { authenticatorId: this.device, isUserVerified });
  }

  passkeys() {
    return this.cdp.send("WebAuthn.getCredentials", { authenticatorId: this.device }).then(({ credentials }) => credentials);
  }

  open(path) {
    return this.page.goto(path.startsWith("http") ? path : service.url + path);
  }

  submit(name) {
    return Promise.all([this.page.waitForNavigation(), this.page.getByRole("button", { name, exact: true }).click()]);
  }

  async inspect(name) {
    problems.push(...(await inspectPage(this.page, name)));
  }

  async isSignedIn() {
    await this.open("/account");
    return new URL(this.page.url()).pathname === "/account";
  }

  async signOut() {
    await this.page.locator(".drop-end summary").click();
    await this.submit("Sign out");
  }

  async signIn(email, password) {
    await this.open("/sign-in");
    await this.page.getByLabel("Email").fill(email);
    await this.page.getByLabel("Password", { exact: true }).fill(password);
    await this.submit("Sign in");
  }
}

/** Returns the code that an authenticator app shows for a secret in base32. */
function codeOf(secret, at) {
  const bits = [...secret.replaceAll(/\s/g, "")].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at / STEP_MS)));
  const hash = createHmac("sha1", key).update(counter).digest();
  const number = hash.readUInt32BE(hash[19] & 0xf) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}

async function invite(email, role) {
  await owner.open("/team");
  await owner.page.getByLabel("Email").fill(email);
  await owner.page.getByLabel(role).check();
  await owner.submit("Create invitation");
  return owner.page.locator("#link").innerText();
}

/** Adds an authenticator app, and returns its secret. */
async function addApp(person) {
  await person.open("/account/authenticator");
  const secret = await person.page.locator("#secret").innerText();
  await person.page.getByLabel("Code", { exact: true }).fill(codeOf(secret, Date.now()));
  await person.submit("Set up");
  return secret;
}

/** Clicks through the organization's sign-in page to the provider. */
async function continueAtProvider(person) {
  await person.open(signInUrl);
  await person.page.getByRole("button", { name: "Continue" }).click();
}

/** Signs a person in at the provider in a new browser. */
async function signInAtProvider() {
  const person = await Person.start();
  await continueAtProvider(person);
  await person.page.waitForURL(new RegExp(`^${service.url}/(?!sign-in)`));
  assert.equal(await person.isSignedIn(), true);
  return person;
}

/** Copies a browser's cookies to another one. */
async function copyOf(person) {
  const copy = await Person.start();
  await copy.context.addCookies(await person.context.cookies());
  assert.equal(await copy.isSignedIn(), true);
  return copy;
}

const rowsOf = (person, name) => person.page.getByRole("region", { name }).locator("tbody tr");

before(async () => {
  service = await Service.start({
    host: "localhost",
    env: { TRIBUTARY_SINGLE_SIGN_ON__ALLOW_PRIVATE_ADDRESSES: "true" },
  });
  provider = await Provider.start({ sub: "colleague", email: COLLEAGUE });
  browser = await openBrowser();
  owner = await Person.start();
  await owner.open(`/setup/${(await service.setupLink()).split("/").at(-1)}`);
  await owner.page.getByLabel("Email").fill("owner@example.com");
  await owner.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await owner.submit("Create account");
});

after(async () => {
  await browser?.close();
  provider?.stop();
  service?.stop();
});

test("an invited person sets up the account with a passkey and no password", async () => {
  const link = await invite(GUEST, /admin/);
  guest = await Person.start();
  await guest.addDevice();
  await guest.open(link);
  await guest.inspect("setup-passkey");

  // Without a check of the user, a passkey is one factor only.
  await guest.setVerified(false);
  await guest.page.getByRole("button", { name: "Use a passkey instead of a password" }).click();
  await guest.page.getByText("No passkey was used.").waitFor();
  await guest.setVerified(true);
  await guest.submit("Use a passkey instead of a password");
  await guest.page.getByRole("heading", { name: "Account created" }).waitFor();
  const passkeys = await guest.passkeys();
  assert.deepEqual(passkeys.map(({ rpId, isResidentCredential }) => [rpId, isResidentCredential]), [["localhost", true]]);

  await guest.open("/account");
  await guest.page.getByText("You have no password.").waitFor();
  assert.equal(await rowsOf(guest, "Passkeys and second factors").count(), 1);
  assert.match(await rowsOf(guest, "Where you are signed in").innerText(), /passkey/);
  await guest.inspect("account-passkey");
});

test("the only passkey stays, and another one can be added and removed", async () => {
  await guest.submit("Remove Passkey");
  await guest.page.getByText("You sign in with this passkey only.").waitFor();
  await guest.open("/account/passkeys");
  await guest.inspect("passkey-new");
  await guest.page.getByRole("button", { name: "Create passkey" }).click();
  await guest.page.getByText("This device has a passkey for your account already.").waitFor();
  const first = guest.device;
  await guest.setPresent(first, false);
  await guest.addDevice("usb");
  await guest.page.getByLabel("Name", { exact: true }).fill("Security key");
  await guest.submit("Create passkey");
  await guest.page.getByText("Saved.").waitFor();
  assert.equal(await rowsOf(guest, "Passkeys and second factors").count(), 2);
  await guest.submit("Remove Security key");
  assert.equal(await rowsOf(guest, "Passkeys and second factors").count(), 1);
  await guest.cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId: guest.device });
  await guest.setPresent(first, true);
  guest.device = first;
});

test("a passkey signs in alone, if its user is verified", async () => {
  await guest.signOut();
  await guest.inspect("sign-in-passkey");
  await guest.setVerified(false);
  await guest.page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await guest.page.getByText("No passkey was used.").waitFor();
  await guest.setVerified(true);
  await guest.submit("Sign in with a passkey");
  assert.equal(await guest.isSignedIn(), true);
  // The passkey works at this host name only.
  const [passkey] = await guest.passkeys();
  assert.ok(passkey.signCount > 0);
});

test("the same person adds an authenticator app", async () => {
  await addApp(guest);
  await guest.page.getByText("Saved.").waitFor();
  const factors = await rowsOf(guest, "Passkeys and second factors").allInnerTexts();
  assert.equal(factors.length, 2);
  assert.match(factors.join(), /[Pp]asskey.*[Aa]uthenticator|[Aa]uthenticator.*[Pp]asskey/s);
});

test("without JavaScript the pages say that passkeys need it", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(`${service.url}/sign-in`);
  await plain.getByText("Passkeys need JavaScript.").waitFor();
  assert.equal(await plain.getByRole("button", { name: "Sign in with a passkey" }).isVisible(), false);
  await context.close();
});

test("a password needs a code of the app, or a passkey", async () => {
  const secret = await addApp(owner);
  await owner.page.getByRole("heading", { name: "Recovery codes", exact: true }).waitFor();
  await owner.open("/account");
  await owner.signOut();
  await owner.signIn("owner@example.com", PASSWORD);
  assert.match(owner.page.url(), /\/sign-in\/code/);
  assert.equal(await owner.page.getByRole("button", { name: "Continue with a passkey" }).count(), 0);
  await owner.page.getByLabel("Code", { exact: true }).fill("000000");
  await owner.submit("Sign in");
  await owner.page.getByText("Wrong code.").waitFor();
  // A code works once. The next one is accepted half a minute early.
  await owner.page.getByLabel("Code", { exact: true }).fill(codeOf(secret, Date.now() + STEP_MS));
  await owner.submit("Sign in");
  assert.equal(await owner.isSignedIn(), true);

  await owner.addDevice();
  await owner.open("/account/passkeys");
  await owner.page.getByLabel("Name", { exact: true }).fill("Laptop");
  await owner.submit("Create passkey");
  await owner.inspect("account-factors");
  await owner.signOut();
  await owner.signIn("owner@example.com", PASSWORD);
  await owner.inspect("second-step-passkey");
  await owner.submit("Continue with a passkey");
  assert.equal(await owner.isSignedIn(), true);
});

test("a colleague signs in at the organization's provider", async () => {
  await owner.open("/team/single-sign-on");
  await owner.page.getByLabel("Issuer URL").fill(provider.issuer);
  await owner.page.getByLabel("Client id").fill(CLIENT_ID);
  await owner.page.getByLabel("Client secret").fill(CLIENT_SECRET);
  await owner.page.getByLabel("Email domains").fill("example.com");
  await owner.page.getByLabel(/Members may also sign in/).check();
  await owner.submit("Save");
  await owner.submit("Test the settings");
  await owner.page.getByText("The provider answers.").waitFor();
  await owner.inspect("single-sign-on");
  signInUrl = await owner.page.locator("#sign-in-url").innerText();
  await owner.open(signInUrl);
  await owner.inspect("sign-on");
  const colleague = await signInAtProvider();
  assert.match(await rowsOf(colleague, "Where you are signed in").innerText(), /single sign-on/);
  await owner.open("/team");
  assert.match(await owner.page.locator("main").innerText(), new RegExp(COLLEAGUE));
  await colleague.context.close();
});

test("the person with the passkey signs in at the provider as well, and ends that session", async () => {
  provider.person = { sub: "guest", email: GUEST };
  const elsewhere = await signInAtProvider();
  await elsewhere.page.getByText(`Signed in as ${GUEST}, admin of`).waitFor();
  assert.equal(await rowsOf(elsewhere, "Passkeys and second factors").count(), 2, "it is the same account");
  const copy = await copyOf(elsewhere);

  await guest.open("/account");
  const sessions = rowsOf(guest, "Where you are signed in");
  const [here, there] = [sessions.filter({ hasText: "this browser" }), sessions.filter({ hasText: "single sign-on" })];
  assert.equal(await sessions.count(), 2);
  assert.match(await here.innerText(), /passkey/);
  await Promise.all([guest.page.waitForNavigation(), there.getByRole("button").click()]);
  assert.equal(await sessions.count(), 1);
  for (const ended of [elsewhere, copy]) {
    assert.equal(await ended.isSignedIn(), false);
    await ended.context.close();
  }
  assert.equal(await guest.isSignedIn(), true);
});

test("a removed person has no access: no session, key, passkey or sign-in at the provider works", async () => {
  const elsewhere = await signInAtProvider();
  const people = [guest, elsewhere, await copyOf(guest), await copyOf(elsewhere)];
  await guest.open("/keys");
  await guest.page.getByLabel("Name", { exact: true }).fill("Guest");
  await guest.submit("Create key");
  const first = await guest.page.locator("#key").innerText();
  const callApi = (key, path, options = {}) => fetch(`${service.url}/api/v1/${path}`, { ...options, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } });
  const created = await callApi(first, "keys", { method: "POST", body: JSON.stringify({ name: "Second", permission: "full" }) });
  assert.equal(created.status, 201);
  const keys = [first, (await created.json()).data.key];
  for (const key of keys) assert.equal((await callApi(key, "apps")).status, 200);
  for (const person of people) assert.equal(await person.isSignedIn(), true);

  await owner.open("/team");
  await Promise.all([owner.page.waitForNavigation(), owner.page.getByRole("button", { name: `Remove ${GUEST}` }).click()]);
  await owner.submit("Remove member");
  for (const key of keys) assert.equal((await callApi(key, "apps")).status, 401);
  for (const person of people) {
    assert.equal(await person.isSignedIn(), false);
    assert.match(person.page.url(), /\/sign-in/);
  }
  await continueAtProvider(elsewhere);
  await elsewhere.page.getByText("You were removed").waitFor();
  assert.equal(await elsewhere.isSignedIn(), false);
  await guest.submit("Sign in with a passkey");
  await guest.page.getByText("This passkey was not accepted.").waitFor();
  await guest.inspect("sign-in-passkey-refused");
  assert.equal(await guest.isSignedIn(), false);
  await owner.open("/audit-log");
  const log = await owner.page.locator("main").innerText();
  for (const action of ["User factor added", "User factor removed", "User removed"]) assert.ok(log.includes(action), action);
});

test("no page had errors", () => {
  assert.deepEqual(problems, []);
});
