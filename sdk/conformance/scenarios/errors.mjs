// Error responses: retries, back-off, and what an SDK gives up.

import assert from "node:assert/strict";
import { drain } from "./delivery.mjs";

const SECOND = 1_000;
const MINUTE = 60_000;

async function serverErrors(t) {
  const driver = await t.register();
  t.server.play("*", { status: 500 });
  const ids = [await driver.track("a")];
  await driver.advance(4 * SECOND);
  const early = t.server.to("events").length;
  assert.ok(early >= 2, "the first retry follows within seconds");
  await driver.advance(60 * MINUTE);
  const attempts = t.server.to("events").length;
  assert.ok(attempts <= 40, `${attempts} attempts in an hour; double the delay up to five minutes`);
  // With delays of at most five minutes there are at least 19; with delays that only double, at most 14.
  assert.ok(attempts >= 18, `${attempts} attempts in an hour; the delay is at most five minutes`);
  ids.push(await driver.track("b"));
  t.server.play("*", "ok");
  await driver.advance(6 * MINUTE);
  t.assertArrived(ids);
}

/** Plays a `Retry-After` and returns the time of the next request in seconds, up to a limit. */
async function secondsUntilRetry(t, status, retryAfter, steps) {
  const driver = await t.register();
  t.server.play("events", { status, code: "rate_limited", headers: { "Retry-After": String(retryAfter) } });
  const ids = [await driver.track("a")];
  await driver.flush();
  const before = t.server.to("events").length;
  ids.push(await driver.track("b"));
  let passed = 0;
  for (const seconds of steps) {
    await driver.advance(seconds * SECOND);
    passed += seconds;
    if (t.server.to("events").length > before) break;
  }
  t.server.play("*", "ok");
  await drain(driver, 120 * MINUTE);
  t.assertArrived(ids);
  return passed;
}

async function retryAfter(t) {
  const passed = await secondsUntilRetry(t, 429, 120, [119, 2, 60]);
  assert.ok(passed > 119, "nothing is sent before Retry-After has passed, even if an event is tracked");
  assert.equal(passed, 121, "the request is repeated when Retry-After has passed");
}

async function longRetryAfter(t) {
  const passed = await secondsUntilRetry(t, 503, 86_400, [1_800, 2_000, 3_600]);
  assert.equal(passed, 3_800, "a Retry-After of a day counts as one hour");
}

async function notTributary(t) {
  const driver = await t.register();
  const ids = [await driver.track("a"), await driver.track("b")];
  for (const behaviour of ["portal", "emptyObject", "partial", { status: 302, headers: { Location: "/login" } }]) {
    t.server.play("events", behaviour);
    await driver.flush();
    assert.equal((await driver.state()).queued, 2, `nothing is confirmed by ${JSON.stringify(behaviour)}`);
  }
  t.server.play("*", "ok");
  await drain(driver);
  t.assertArrived(ids);
}

async function portalAtFirstLaunch(t) {
  t.server.play("*", "portal");
  const driver = await t.open();
  const id = await driver.track("a");
  await driver.advance(2 * MINUTE);
  assert.equal(t.server.to("events").length, 0, "a portal's response to configure registers nothing");
  t.server.play("*", "ok");
  await driver.advance(6 * MINUTE);
  t.assertArrived([id]);
  assert.ok(t.server.to("configure").length >= 2);
}

async function configureFails(t) {
  t.server.play("configure", { status: 500 });
  const driver = await t.open();
  const id = await driver.track("a");
  await driver.flush();
  assert.equal(t.server.to("events").length, 0, "a new device's events wait for configure");
  await driver.advance(10 * MINUTE);
  t.assertArrived([id]);
  assert.ok(t.server.to("configure").length >= 5, "they wait for five error responses");
}

async function registeredDevice(t) {
  const driver = await t.register();
  await driver.exit();
  t.server.play("configure", { status: 500 });
  const again = await t.open();
  const id = await again.track("a");
  await again.flush();
  await again.advance(5 * SECOND);
  t.assertArrived([id]);
}

async function refusedBatch(t) {
  const driver = await t.register();
  t.server.refuses = ({ events }) => (events.some(({ name }) => name === "bad") ? "validation_failed" : undefined);
  const ids = [];
  for (let number = 0; number < 40; number++) {
    if (number === 17) await driver.track("bad");
    ids.push(await driver.track(`e${number}`));
  }
  await driver.flush();
  await drain(driver, 90 * MINUTE);
  t.assertArrived(ids);
  assert.ok(t.server.to("events").length <= 30, `${t.server.to("events").length} requests; split the batch in halves`);
  assert.ok((await driver.state()).problems.includes("request_refused"), "the app learns of the dropped event");
}

async function rejectedEvent(t) {
  const driver = await t.register();
  t.server.rejects = ({ name }) => name === "bad";
  const ids = [await driver.track("a")];
  await driver.track("bad");
  ids.push(await driver.track("b"));
  await driver.flush();
  t.assertArrived(ids);
  const { queued, problems } = await driver.state();
  assert.equal(queued, 0, "a rejected event is dropped");
  assert.ok(problems.includes("event_rejected"), "the app learns of it");
  assert.equal(t.server.to("events").length, 1, "it is not sent again");
}

async function invalidKey(t) {
  const driver = await t.register();
  const ids = [await driver.track("a")];
  t.server.play("*", { status: 401, code: "invalid_api_key" });
  await driver.flush();
  ids.push(await driver.track("b"));
  await driver.advance(120 * MINUTE);
  assert.ok(t.server.to("events").length <= 2, "nothing is sent before the next start");
  const { queued, problems } = await driver.state();
  assert.equal(queued, 2, "everything is kept");
  assert.ok(problems.includes("invalid_api_key"), "the app learns of it");
  await driver.exit();
  t.server.play("*", "ok");
  await drain(await t.open());
  t.assertArrived(ids);
}

async function disabled(t) {
  t.server.sdkEnabled = false;
  const driver = await t.open();
  await driver.track("a");
  await driver.flush();
  assert.equal((await driver.state()).queued, 0, "the queue is deleted");
  assert.equal(await driver.track("b"), null, "events are not recorded");
  const before = t.server.requests.length;
  await driver.advance(120 * MINUTE);
  assert.equal(t.server.requests.length, before, "nothing is sent");
  await driver.exit();
  t.server.sdkEnabled = true;
  const again = await t.open();
  await again.flush();
  const id = await again.track("c");
  await drain(again);
  t.assertArrived([id]);
}

async function disabledLater(t) {
  const driver = await t.register();
  t.server.sdkEnabled = false;
  await driver.track("a");
  await driver.flush();
  assert.equal((await driver.state()).queued, 0, "403 sdk_disabled deletes the queue");
  assert.equal(await driver.track("b"), null);
  const before = t.server.requests.length;
  await driver.advance(120 * MINUTE);
  assert.equal(t.server.requests.length, before, "nothing is sent");
  t.assertArrived([]);
}

export const ERRORS = [
  {
    name: "server_errors",
    requires: "5xx responses are retried with a delay that doubles from about a second to five minutes.",
    run: serverErrors,
  },
  { name: "retry_after", requires: "Retry-After is honoured; a new event does not shorten it.", run: retryAfter },
  { name: "long_retry_after", requires: "A Retry-After of more than an hour counts as one hour.", run: longRetryAfter },
  {
    name: "captive_portal",
    requires: "A response that does not list a result for every event confirms nothing.",
    run: notTributary,
  },
  {
    name: "captive_portal_first_launch",
    requires: "A response to configure that is not Tributary's registers nothing.",
    run: portalAtFirstLaunch,
  },
  {
    name: "configure_fails",
    requires: "A new device's events wait for configure, but not for more than five error responses.",
    run: configureFails,
  },
  {
    name: "registered_device",
    requires: "A registered device's events do not wait for configure.",
    run: registeredDevice,
  },
  {
    name: "refused_batch",
    requires: "A refused batch is split until the bad event is found; all other events arrive.",
    run: refusedBatch,
  },
  { name: "rejected_event", requires: "A rejected event is dropped and reported to the app.", run: rejectedEvent },
  {
    name: "invalid_key",
    requires: "After a 401, everything is kept, and the next start tries again.",
    run: invalidKey,
  },
  { name: "disabled", requires: "With sdkEnabled false, the SDK stops; the next start asks again.", run: disabled },
  { name: "disabled_later", requires: "A 403 sdk_disabled stops the SDK and deletes the queue.", run: disabledLater },
];
