// Identity and the user's rights: hashes only, opt-out, reset and erasure.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { drain } from "./delivery.mjs";

const MINUTE = 60_000;
const sha256 = (text) => createHash("sha256").update(text).digest("hex");

async function hashesOnly(t) {
  t.server.offline = true;
  const driver = await t.open();
  await driver.do("setMatching", { email: " Jane.Doe@Example.com", phone: "+49 (151) 234-56789" });
  await driver.track("a");
  t.assertUnseen("ane.");
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  const hashes = Object.assign({}, ...t.server.to("identify").map(({ body }) => body.matching));
  assert.equal(hashes.email, sha256("jane.doe@example.com"));
  assert.equal(hashes.phone, sha256("4915123456789"));
  assert.equal(hashes.phoneE164, sha256("+4915123456789"));
  for (const text of ["ane.", "ANE.", "151234", "151) 234"]) t.assertUnseen(text);
}

async function userId(t) {
  const driver = await t.register();
  await driver.do("setUserId", { userId: "user-42", signature: "c0ffee" });
  const id = await driver.track("a");
  await driver.flush();
  await drain(driver);
  t.assertArrived([id]);
  const [identify] = t.server.to("identify");
  assert.equal(identify?.body.userId, "user-42");
  assert.equal(identify?.body.userIdSignature, "c0ffee");
}

async function optOut(t) {
  const driver = await t.register();
  const { deviceId } = await driver.state();
  t.server.offline = true;
  await driver.track("queued");
  await driver.do("optOut");
  assert.equal(await driver.track("refused"), null, "events are not recorded");
  assert.equal((await driver.state()).queued, 0, "queued events are deleted");
  await driver.kill();
  t.server.offline = false;
  const again = await t.open();
  await again.advance(10 * MINUTE);
  const [, notice, ...more] = t.server.requests;
  assert.equal(notice?.endpoint, "configure", "the server is told");
  const { adUserData, adPersonalization } = notice.body.consent;
  assert.deepEqual([adUserData, adPersonalization], [false, false], "consent is refused");
  assert.deepEqual(
    more.map(({ endpoint }) => endpoint),
    [],
    "nothing else is sent",
  );
  await again.exit();
  const last = await t.open();
  assert.equal(await last.track("refused"), null, "opt-out survives a restart");
  await last.advance(10 * MINUTE);
  assert.equal(t.server.requests.length, 2, "nothing is sent after a restart");
  await last.do("optIn");
  await last.flush();
  const id = await last.track("resumed");
  await last.flush();
  await drain(last);
  t.assertArrived([id]);
  assert.equal(t.server.events[0].deviceId, deviceId, "the device id is the same after optIn");
}

async function reset(t) {
  const driver = await t.register({ consent: { adUserData: true } });
  const before = await driver.state();
  await driver.do("setGlobalParams", { params: { plan: "pro" } });
  await driver.do("setUserId", { userId: "user-42" });
  await driver.flush();
  t.server.offline = true;
  const ids = [await driver.track("before")];
  await driver.do("reset");
  const after = await driver.state();
  assert.notEqual(after.deviceId, before.deviceId, "the device id is new");
  assert.equal(after.attribution, null, "the attribution is forgotten");
  ids.push(await driver.track("after"));
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  await driver.advance(MINUTE);
  t.assertArrived(ids);
  const [old, fresh] = t.server.events;
  assert.equal(old.deviceId, before.deviceId, "queued events keep their device id");
  assert.equal(fresh.deviceId, after.deviceId);
  assert.equal(fresh.event.params?.plan, undefined, "global parameters are cleared");
  assert.equal(fresh.event.consent?.adUserData ?? null, null, "consent is not carried over");
  const about = t.server.requests.filter(({ body }) => body?.deviceId === after.deviceId);
  assert.equal(about[0]?.endpoint, "configure", "the new device is registered before its events");
  assert.ok(
    about.every(({ body }) => !body.userId),
    "the new device has no user",
  );
  const tokens = new Set(
    t.server
      .to("configure")
      .map(({ body }) => body.eraseToken)
      .filter(Boolean),
  );
  assert.equal(tokens.size, 2, "each device id has its own erase token");
}

async function eraseToken(t) {
  // A disabled SDK registers nothing, so its token is not confirmed.
  t.server.sdkEnabled = false;
  const driver = await t.open();
  await driver.flush();
  const token = t.server.to("configure")[0].body.eraseToken;
  assert.ok(token, "the first configure has an eraseToken");
  await driver.exit();
  t.server.sdkEnabled = true;
  const again = await t.open();
  await again.flush();
  assert.equal(t.server.to("configure")[1]?.body.eraseToken, token, "the token is sent until a response confirms it");
  await again.exit();
  await (await t.open()).flush();
  const later = t.server.to("configure").map(({ body }) => body.eraseToken ?? token);
  assert.deepEqual(new Set(later), new Set([token]), "the token does not change");
}

async function erase(t) {
  const driver = await t.register();
  const { deviceId } = await driver.state();
  const { eraseToken: token } = t.server.to("configure")[0].body;
  await driver.track("queued");
  await driver.do("eraseMe");
  await driver.advance(MINUTE);
  assert.deepEqual(
    t.server.erased,
    [{ deviceId, eraseToken: token }],
    "erase is sent once, with the token of configure",
  );
  const before = t.server.requests.length;
  assert.equal(await driver.track("after"), null, "events are not recorded");
  await driver.do("setConsent", { consent: { adUserData: true } });
  await driver.advance(120 * MINUTE);
  assert.equal(t.server.requests.length, before, "nothing is sent");
  t.assertArrived([]);
  await driver.exit();
  const again = await t.open();
  await again.flush();
  await again.advance(MINUTE);
  const more = t.server.requests.slice(before);
  assert.ok(
    more.every(({ body }) => body.deviceId !== deviceId),
    "a later start does not use the erased device id",
  );
  assert.ok(
    more.every(({ body }) => body.eraseToken !== token),
    "a later start does not use the erased device's token",
  );
}

async function eraseLostResponse(t) {
  const driver = await t.register();
  const { deviceId } = await driver.state();
  t.server.play("erase", "lost");
  await driver.do("eraseMe");
  await driver.advance(5 * MINUTE);
  assert.ok(t.server.erased.length >= 2, "erase is repeated if the response is lost");
  await driver.kill();
  t.server.offline = true;
  const again = await t.open();
  await again.advance(MINUTE);
  t.server.play("*", "ok");
  t.server.offline = false;
  const before = t.server.erased.length;
  await again.advance(10 * MINUTE);
  assert.equal(t.server.erased.length, before + 1, "erase survives a restart, and ends with the confirmation");
  assert.equal(new Set(t.server.erased.map((one) => JSON.stringify(one))).size, 1, "every attempt is the same");
  const others = t.server.requests
    .slice(1)
    .filter(({ endpoint, body }) => endpoint !== "erase" && body?.deviceId === deviceId);
  assert.deepEqual(
    others.map(({ endpoint }) => endpoint),
    [],
    "nothing else is sent for the erased device",
  );
}

async function eraseWhileDisabled(t) {
  const driver = await t.register();
  const { deviceId } = await driver.state();
  t.server.sdkEnabled = false;
  await driver.track("a");
  await driver.flush();
  await driver.do("eraseMe");
  await driver.advance(MINUTE);
  assert.deepEqual(
    t.server.erased.map((one) => one.deviceId),
    [deviceId],
    "a disabled SDK still erases its device",
  );
}

export const PERSON = [
  {
    name: "hashes_only",
    requires:
      "Email addresses and phone numbers are neither sent nor stored in clear text, only their hashes are sent.",
    run: hashesOnly,
  },
  { name: "user_id", requires: "The user id and its signature are sent with identify.", run: userId },
  {
    name: "opt_out",
    requires: "optOut deletes the queue, tells the server once, and sends nothing until optIn, also after a restart.",
    run: optOut,
  },
  {
    name: "reset",
    requires:
      "reset makes a new device without user, consent and global parameters; queued events keep the old device id.",
    run: reset,
  },
  {
    name: "erase_token",
    requires: "The erase token is sent with configure until a response confirms it, and never changes.",
    run: eraseToken,
  },
  { name: "erase", requires: "eraseMe erases the device on the server, then clears and stops everything.", run: erase },
  {
    name: "erase_lost_response",
    requires: "eraseMe is repeated until it is confirmed, also after a kill.",
    run: eraseLostResponse,
  },
  {
    name: "erase_while_disabled",
    requires: "eraseMe also works after the server has disabled the SDK, because it is the user's right.",
    run: eraseWhileDisabled,
  },
];
