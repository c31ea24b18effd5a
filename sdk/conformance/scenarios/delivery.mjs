// Every event arrives exactly once and in order, whatever fails on the way.

import assert from "node:assert/strict";
import { START_MS } from "../lib/scenario.mjs";
import { ATTRIBUTION } from "../lib/server.mjs";

const MINUTE = 60_000;
const DAY = 86_400_000;

/** Advances in steps until the queue is empty, or fails after `ms`. */
export async function drain(driver, ms = 20 * MINUTE) {
  for (let passed = 0; passed <= ms; passed += MINUTE) {
    if ((await driver.state()).queued === 0) return;
    await driver.advance(MINUTE);
  }
  assert.fail(`${(await driver.state()).queued} events are still queued after ${ms / MINUTE} minutes`);
}

async function firstLaunch(t) {
  const driver = await t.open();
  const ids = [
    await driver.track("sign_up"),
    await driver.track("purchase", { revenue: "9.99", currency: "EUR", sku: "a" }),
  ];
  await driver.flush();
  assert.equal(t.server.requests[0]?.endpoint, "configure", "configure is the first request");
  t.assertArrived(ids);
  const { event } = t.server.events[1];
  assert.equal(Number(event.revenue), 9.99);
  assert.equal(event.currency, "EUR");
  assert.deepEqual(event.params, { sku: "a" });
  assert.ok(Math.abs(event.timestampMs - START_MS) <= 10, "timestampMs is the time of the call");
  const { deviceId, attribution, queued } = await driver.state();
  assert.equal(queued, 0);
  assert.equal(attribution?.id, ATTRIBUTION.id, "the attribution is available");
  await driver.exit();
  const again = await t.open();
  await again.flush();
  assert.equal((await again.state()).deviceId, deviceId, "the device id survives a restart");
  assert.equal((await again.state()).attribution?.id, ATTRIBUTION.id);
  for (const { body } of t.server.requests) assert.equal(body.deviceId, deviceId);
}

async function sendsByItself(t) {
  const driver = await t.register();
  const id = await driver.track("later");
  await driver.advance(MINUTE);
  t.assertArrived([id]);
}

async function lostResponse(t) {
  const driver = await t.register();
  t.server.play("events", "lost");
  const ids = [await driver.track("a"), await driver.track("b", { text: 'ä\u2028"', list: [1.5, null] })];
  await driver.flush();
  ids.push(await driver.track("c"));
  await driver.flush();
  assert.ok(t.server.to("events").length >= 2, "the request is repeated");
  t.server.play("*", "ok");
  await drain(driver);
  t.assertArrived(ids);
}

async function lostConfigureResponse(t) {
  t.server.play("configure", "lost");
  const driver = await t.open();
  await driver.flush();
  await driver.kill();
  const again = await t.open();
  await again.flush();
  const id = await again.track("a");
  t.server.play("*", "ok");
  await drain(again);
  t.assertArrived([id]);
  const sent = t.server.to("configure").map(({ body }) => `${body.deviceId} ${body.eraseToken}`);
  assert.ok(sent.length >= 3, "configure is repeated");
  assert.equal(new Set(sent).size, 1, "deviceId and eraseToken are the same in every attempt");
}

async function offlineHour(t) {
  t.server.offline = true;
  const openedUrl = "https://links.example.com/spring?ar_click_id=clk_1";
  const driver = await t.open({ openedUrl });
  const ids = [];
  for (let minute = 0; minute < 60; minute += 10) {
    ids.push(await driver.track("tick", { minute }));
    await driver.advance(10 * MINUTE);
  }
  assert.ok(t.server.attempts <= 80, `${t.server.attempts} attempts in an hour offline; back off`);
  await driver.exit();
  const again = await t.open({ now: START_MS + 60 * MINUTE });
  await again.advance(MINUTE);
  t.server.offline = false;
  await drain(again);
  t.assertArrived(ids);
  const [first] = t.server.requests;
  assert.equal(first.endpoint, "configure", "the device is registered before its events");
  assert.equal(first.body.openedUrl, openedUrl, "the URL of the first launch is not lost");
  const times = t.server.events.map(({ event }) => Math.round((event.timestampMs - START_MS) / MINUTE));
  assert.deepEqual(times, [0, 10, 20, 30, 40, 50], "events have the time of the call, not of sending");
}

async function killedBeforeSending(t) {
  t.server.offline = true;
  const ids = [];
  for (let start = 0; start < 3; start++) {
    const driver = await t.open();
    for (let number = 0; number < 5; number++) ids.push(await driver.track(`e${start}.${number}`));
    await driver.kill();
  }
  t.server.offline = false;
  const driver = await t.open();
  ids.push(await driver.track("last"));
  await drain(driver);
  t.assertArrived(ids);
  assert.equal(new Set(t.server.events.map(({ deviceId }) => deviceId)).size, 1, "the device id survives");
}

async function killedBeforeResponse(t) {
  // After a kill, the server may still answer the old request.
  t.server.allowsRepeats = t.server.allowsConcurrency = true;
  let driver = await t.register();
  const ids = [];
  // The server stores the first batch before the kill, and does not store the second.
  for (const behaviour of ["hold", "hang"]) {
    ids.push(await driver.track("a"), await driver.track("b"));
    t.server.play("events", behaviour);
    const before = t.server.to("events").length;
    driver.send('{"do":"flush"}');
    await t.server.arrival("events", before + 1);
    await driver.kill();
    t.server.release();
    driver = await t.open();
  }
  ids.push(await driver.track("c"));
  await drain(driver);
  t.assertArrived(ids);
}

async function clockChanges(t) {
  t.server.offline = true;
  let driver = await t.open();
  const ids = [];
  const clocks = [START_MS, START_MS + 2 * DAY, START_MS - 3 * DAY, START_MS + MINUTE, START_MS + 5 * DAY];
  for (const ms of clocks) {
    await driver.do("setClock", { ms });
    ids.push(await driver.track("first"), await driver.track("second"));
  }
  await driver.exit();
  // The clock of a device without power starts in 1970.
  driver = await t.open({ now: DAY });
  ids.push(await driver.track("without time"));
  t.server.offline = false;
  await drain(driver);
  t.assertArrived(ids);
  clocks.forEach((ms, at) => {
    const { timestampMs } = t.server.events[2 * at].event;
    assert.ok(
      Math.abs(timestampMs - ms) <= 1_000,
      `event ${2 * at}: timestampMs ${timestampMs} follows the wall clock (${ms})`,
    );
  });
  assert.equal(t.server.events.at(-1).event.timestampMs ?? null, null, "a time before 2015 is left out");
}

async function retriesAfterClockChange(t) {
  const driver = await t.register();
  t.server.offline = true;
  const id = await driver.track("a");
  await driver.advance(MINUTE);
  await driver.do("setClock", { ms: START_MS - 300 * DAY });
  t.server.offline = false;
  await driver.advance(10 * MINUTE);
  t.assertArrived([id]);
}

async function twoProcesses(t) {
  t.server.allowsRepeats = t.server.allowsConcurrency = true;
  const drivers = await Promise.all([t.open({ platform: "web" }), t.open({ platform: "web" })]);
  const own = [[], []];
  t.server.play("events", "lost");
  for (let number = 0; number < 20; number++) {
    for (const at of [0, 1]) own[at].push(await drivers[at].track(`process ${at}`, { number }));
    if (number === 10) await Promise.all(drivers.map((driver) => driver.flush()));
    if (number === 12) t.server.play("*", "ok");
  }
  for (let round = 0; round < 20; round++) {
    await Promise.all(drivers.map((driver) => driver.advance(MINUTE)));
    if (t.server.events.length === 40) break;
  }
  for (const at of [0, 1]) {
    const arrived = t.server.events.filter(({ event }) => event.name === `process ${at}`);
    assert.deepEqual(
      arrived.map(({ eventId }) => eventId),
      own[at],
      "each process's events arrive once and in order",
    );
  }
  assert.equal(new Set(t.server.events.map(({ deviceId }) => deviceId)).size, 1, "both processes are one device");
}

async function order(t) {
  const driver = await t.register();
  t.server.offline = true;
  const ids = [];
  for (let number = 0; number < 250; number++) ids.push(await driver.track(`e${number}`));
  await driver.do("setUserId", { userId: "user-42" });
  ids.push(await driver.track("after sign-in"));
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  t.assertArrived(ids);
  const sent = t.server.requests.map(({ endpoint }) => endpoint).filter((one) => one !== "configure" && one !== "skan");
  assert.ok(sent.length <= 6, `${sent.length} requests for 251 events; send them in batches`);
  assert.deepEqual(sent.slice(-2), ["identify", "events"], "identify is sent between the events before and after it");
}

export const DELIVERY = [
  {
    name: "first_launch",
    requires: "The first request is configure; events follow with amount, params and time; state survives a restart.",
    run: firstLaunch,
  },
  { name: "sends_by_itself", requires: "A tracked event is sent within a minute without flush.", run: sendsByItself },
  {
    name: "lost_response",
    requires: "If the response is lost, the same bytes are sent again until they are confirmed.",
    run: lostResponse,
  },
  {
    name: "lost_configure_response",
    requires: "If the response to configure is lost, it is repeated with the same device id and erase token.",
    run: lostConfigureResponse,
  },
  {
    name: "offline_hour",
    requires: "An hour offline after the first launch loses nothing; configure is sent before the events.",
    run: offlineHour,
  },
  {
    name: "killed_before_sending",
    requires: "Events survive a SIGKILL right after track has answered.",
    run: killedBeforeSending,
  },
  {
    name: "killed_before_response",
    requires: "After a SIGKILL between request and response, the same bytes are sent again.",
    run: killedBeforeResponse,
  },
  {
    name: "clock_changes",
    requires: "Events keep the order of the calls if the clock changes; a time before 2015 is left out.",
    run: clockChanges,
  },
  {
    name: "retries_after_clock_change",
    requires: "A clock that is set back does not delay retries.",
    run: retriesAfterClockChange,
  },
  {
    name: "two_processes",
    requires: "Two processes with one storage are one device, and every event arrives once.",
    run: twoProcesses,
  },
  {
    name: "order",
    requires: "Events and identify are sent in the order of the calls, in batches.",
    run: order,
  },
];
