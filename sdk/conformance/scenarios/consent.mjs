// Each event carries the consent that was in force when it was tracked.

import assert from "node:assert/strict";
import { drain } from "./delivery.mjs";

const REFUSED = { adUserData: false, adPersonalization: false };
const GRANTED = { adUserData: true, adPersonalization: true };

/** Returns the consent with null for fields that were not asked. */
function full(consent) {
  const { adUserData = null, adPersonalization = null, tracking = null } = consent ?? {};
  return { adUserData, adPersonalization, tracking };
}

/** Asserts the consent of the accepted events, in order. */
function assertConsents(t, expected) {
  const found = t.server.events.map(({ event }) => full(event.consent));
  assert.deepEqual(found, expected.map(full), "each event has the consent that was in force when it was tracked");
}

/** Asserts the consent in the last configure request. */
function assertDevice(t, expected) {
  const last = t.server.to("configure").at(-1);
  assert.deepEqual(full(last?.body.consent), full(expected), "the server knows the device's current consent");
}

async function neverAsked(t) {
  const driver = await t.register();
  await driver.track("a");
  await driver.flush();
  assertConsents(t, [{}]);
  assertDevice(t, {});
}

async function asOption(t) {
  const driver = await t.open({ consent: { ...REFUSED, tracking: "denied" } });
  await driver.track("a");
  await driver.flush();
  assertConsents(t, [{ ...REFUSED, tracking: "denied" }]);
  assert.deepEqual(full(t.server.to("configure")[0].body.consent), full({ ...REFUSED, tracking: "denied" }));
}

async function beforeConfigure(t) {
  const driver = t.start();
  await driver.do("setConsent", { consent: REFUSED });
  await driver.configure();
  await driver.track("a");
  await driver.advance(60_000);
  assertConsents(t, [REFUSED]);
  assertDevice(t, REFUSED);
}

async function slowConfigure(t) {
  t.server.play("configure", "hold");
  const driver = await t.open();
  await t.server.arrival("configure");
  await driver.track("before");
  await driver.do("setConsent", { consent: { adUserData: false } });
  await driver.track("purchase", { revenue: "9.99", currency: "EUR" });
  t.server.release();
  await driver.do("settle");
  await driver.advance(60_000);
  assertConsents(t, [{}, { adUserData: false }]);
  assertDevice(t, { adUserData: false });
}

async function withdrawal(t) {
  const driver = await t.open({ consent: GRANTED });
  t.server.offline = true;
  await driver.track("granted");
  await driver.do("setConsent", { consent: { adUserData: false } });
  await driver.track("withdrawn");
  await driver.do("setConsent", { consent: { adUserData: true } });
  await driver.track("granted again");
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  assertConsents(t, [GRANTED, { adUserData: false, adPersonalization: true }, GRANTED]);
  await driver.do("setConsent", { consent: REFUSED });
  await driver.advance(10_000);
  assertDevice(t, REFUSED);
}

async function withdrawalFirst(t) {
  const driver = await t.open({ consent: GRANTED });
  await driver.flush();
  t.server.offline = true;
  await driver.track("granted");
  await driver.do("setConsent", { consent: REFUSED });
  const before = t.server.requests.length;
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  assertConsents(t, [GRANTED]);
  const sent = t.server.requests.slice(before).map(({ endpoint }) => endpoint);
  assert.deepEqual(sent, ["configure", "events"], "the withdrawal is sent before events that wait");
  assertDevice(t, REFUSED);
}

async function refusalHoldsBack(t) {
  let driver = await t.open({ consent: GRANTED });
  await driver.flush();
  t.server.play("configure", { status: 500 });
  await driver.track("granted");
  await driver.do("setConsent", { consent: { adUserData: false } });
  await driver.advance(10 * 60_000);
  await driver.kill();
  driver = await t.open();
  await driver.track("refused");
  await driver.advance(10 * 60_000);
  assert.equal(t.server.to("events").length, 0, "no event is sent before the server knows of the refusal");
  t.server.play("*", "ok");
  await driver.flush();
  await drain(driver);
  assertConsents(t, [GRANTED, { adUserData: false, adPersonalization: true }]);
}

async function acrossRestart(t) {
  t.server.offline = true;
  const driver = await t.open();
  await driver.do("setConsent", { consent: REFUSED });
  await driver.track("a");
  await driver.kill();
  t.server.offline = false;
  const again = await t.open();
  await again.track("b");
  await again.flush();
  await drain(again);
  assertConsents(t, [REFUSED, REFUSED]);
  assertDevice(t, REFUSED);
}

/** A repeatable sequence of random numbers from 0 to 1. */
function randomNumbers(seed) {
  return () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
}

async function interleavings(t) {
  t.server.allowsRepeats = true;
  const random = randomNumbers(29);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const expected = new Map();
  let consent = {};
  let driver = await t.open();
  for (let step = 0; step < 300; step++) {
    const chance = random();
    if (chance < 0.45) expected.set(await driver.track(`e${step}`), full(consent));
    else if (chance < 0.7) {
      const change = { [pick(["adUserData", "adPersonalization"])]: random() < 0.5 };
      if (random() < 0.2) change.tracking = pick(["authorized", "denied", "notDetermined"]);
      consent = { ...consent, ...change };
      await driver.do("setConsent", { consent: change });
    } else if (chance < 0.8) await driver.flush();
    else if (chance < 0.88) await driver.advance(Math.floor(random() * 5_000));
    else if (chance < 0.97) t.server.play("*", pick(["ok", "lost", "ok", { status: 503 }]));
    else {
      await driver.kill();
      driver = await t.open();
    }
  }
  t.server.play("*", "ok");
  await driver.flush();
  await drain(driver);
  t.assertArrived([...expected.keys()]);
  for (const { eventId, event } of t.server.events) {
    assert.deepEqual(full(event.consent), expected.get(eventId), `consent of ${event.name}`);
  }
  await driver.advance(600_000);
  assertDevice(t, consent);
}

export const CONSENT = [
  {
    name: "consent_never_asked",
    requires: "Without an answer of the user, events carry an empty consent.",
    run: neverAsked,
  },
  {
    name: "consent_option",
    requires: "Consent passed to configure holds for the first request and event.",
    run: asOption,
  },
  { name: "consent_before_configure", requires: "Consent set before configure is not lost.", run: beforeConfigure },
  {
    name: "consent_slow_configure",
    requires: "An event that is tracked after a refusal carries it, even if configure was sent before.",
    run: slowConfigure,
  },
  {
    name: "consent_withdrawal",
    requires: "Each event keeps the consent of its time; the server learns of a withdrawal.",
    run: withdrawal,
  },
  {
    name: "consent_withdrawal_first",
    requires: "A withdrawal is sent before events that were tracked before it and still wait.",
    run: withdrawalFirst,
  },
  {
    name: "consent_refusal_waits",
    requires: "While the server does not know of a refusal, no event is sent, even if configure fails.",
    run: refusalHoldsBack,
  },
  { name: "consent_restart", requires: "Consent survives a kill and a restart.", run: acrossRestart },
  {
    name: "consent_interleavings",
    requires: "300 random calls, faults and restarts: every event carries the consent of its time.",
    run: interleavings,
  },
];
