// The user's rights in combination: opt-out, refusal, reset and erasure, one after the other.

import assert from "node:assert/strict";
import { drain } from "./delivery.mjs";

const MINUTE = 60_000;
const GRANTED = { adUserData: true, adPersonalization: true };
const REFUSED = { adUserData: false, adPersonalization: false };

const isRefusal = ({ endpoint, body }) => endpoint === "configure" && body.consent?.adUserData === false;

async function optOutThenErase(t) {
  const driver = await t.register();
  const { deviceId } = await driver.state();
  await driver.do("optOut");
  await driver.advance(MINUTE);
  await driver.do("eraseMe");
  await driver.advance(MINUTE);
  assert.deepEqual(
    t.server.erased.map((one) => one.deviceId),
    [deviceId],
    "the device is erased",
  );
  await driver.exit();
  const before = t.server.requests.length;
  const again = await t.open();
  assert.equal(await again.track("refused"), null, "the opt-out outlives the erasure");
  await again.advance(10 * MINUTE);
  assert.equal(t.server.requests.length, before, "nothing is sent");
  await again.do("optIn");
  const id = await again.track("resumed");
  await again.flush();
  await drain(again);
  t.assertArrived([id]);
  assert.notEqual(t.server.events[0].deviceId, deviceId, "the erased device id is not used again");
}

async function refusalThenReset(t) {
  const driver = await t.register({ consent: GRANTED });
  const { deviceId } = await driver.state();
  t.server.offline = true;
  const id = await driver.track("before");
  await driver.do("setConsent", { consent: REFUSED });
  await driver.do("reset");
  await driver.kill();
  t.server.offline = false;
  const again = await t.open();
  await again.flush();
  await drain(again);
  await again.advance(MINUTE);
  t.assertArrived([id]);
  const about = t.server.requests.filter(({ body }) => body?.deviceId === deviceId).slice(1);
  assert.ok(about[0] && isRefusal(about[0]), "the refusal arrives before the events of the earlier device");
  assert.equal(t.server.events[0].deviceId, deviceId, "the event keeps its device id");
}

async function optOutThenReset(t) {
  const driver = await t.register();
  const { deviceId } = await driver.state();
  t.server.offline = true;
  await driver.do("optOut");
  await driver.do("reset");
  await driver.kill();
  t.server.offline = false;
  const again = await t.open();
  await again.advance(10 * MINUTE);
  assert.equal(await again.track("refused"), null, "the opt-out outlives reset");
  await again.advance(10 * MINUTE);
  const [, notice, ...more] = t.server.requests;
  assert.ok(notice && isRefusal(notice), "the server is told");
  assert.equal(notice.body.deviceId, deviceId, "the opt-out is that of the earlier device");
  assert.deepEqual(
    more.map(({ endpoint }) => endpoint),
    [],
    "nothing else is sent",
  );
}

async function optOutUnconfirmedToken(t) {
  t.server.play("configure", "lost");
  const driver = await t.open();
  await driver.flush();
  await driver.do("optOut");
  t.server.play("*", "ok");
  await driver.advance(10 * MINUTE);
  const [first, ...more] = t.server.to("configure");
  const last = more.at(-1);
  assert.ok(last && isRefusal(last), "the server is told");
  assert.equal(last.body.eraseToken, first.body.eraseToken, "the refusal carries the token");
}

async function resetTwoProcesses(t) {
  t.server.allowsConcurrency = true;
  const one = await t.register({ platform: "web" });
  const other = await t.open({ platform: "web" });
  await other.advance(MINUTE);
  await one.advance(MINUTE);
  const before = await other.state();
  t.server.offline = true;
  const ids = [await other.track("before"), await other.track("before too")];
  await one.do("reset");
  const after = await one.state();
  await one.exit();
  ids.push(await other.track("after"));
  t.server.offline = false;
  await other.flush();
  await drain(other);
  await other.advance(MINUTE);
  t.assertArrived(ids);
  assert.deepEqual(
    t.server.events.map(({ deviceId }) => deviceId),
    [before.deviceId, before.deviceId, after.deviceId],
    "events keep the device id of their time",
  );
  const about = t.server.requests.filter(({ body }) => body?.deviceId === after.deviceId);
  assert.equal(about[0]?.endpoint, "configure", "the new device is registered before its events");
  assert.equal((await other.state()).deviceId, after.deviceId, "both processes have the same device id");
}

export const RIGHTS = [
  {
    name: "opt_out_then_erase",
    requires: "An opt-out outlives eraseMe and a restart.",
    run: optOutThenErase,
  },
  {
    name: "refusal_then_reset",
    requires: "A refusal that was not sent before reset arrives before the earlier device's events, also after a kill.",
    run: refusalThenReset,
  },
  {
    name: "opt_out_then_reset",
    requires: "An opt-out that was not sent before reset is sent for the earlier device, and stays.",
    run: optOutThenReset,
  },
  {
    name: "opt_out_unconfirmed_token",
    requires: "The opt-out carries the erase token if no response has confirmed it.",
    run: optOutUnconfirmedToken,
  },
  {
    name: "reset_two_processes",
    requires: "After reset in one process, the other sends earlier events under the earlier id and registers the new one.",
    run: resetTwoProcesses,
  },
];
