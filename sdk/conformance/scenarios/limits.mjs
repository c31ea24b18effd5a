// Limits of requests, events and the queue.

import assert from "node:assert/strict";
import { drain } from "./delivery.mjs";

async function batchEvents(t) {
  const driver = await t.register();
  t.server.offline = true;
  const ids = [];
  for (let number = 0; number < 230; number++) ids.push(await driver.track("e"));
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  t.assertArrived(ids);
}

async function batchBytes(t) {
  const driver = await t.register();
  t.server.offline = true;
  const ids = [];
  for (let number = 0; number < 90; number++) ids.push(await driver.track("e", { text: "ä".repeat(7_000) }));
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  t.assertArrived(ids);
}

async function queueLimit(t) {
  t.server.offline = true;
  const driver = await t.open({ queueLimit: 10 });
  const paid = [];
  const free = [];
  for (const revenue of ["1", "2"]) paid.push(await driver.track("purchase", { revenue, currency: "EUR" }));
  for (let number = 0; number < 20; number++) free.push(await driver.track(`e${number}`));
  const { queued, problems } = await driver.state();
  assert.equal(queued, 10, "the queue has at most queueLimit entries");
  assert.ok(problems.includes("queue_full"), "the app learns of it");
  t.server.offline = false;
  await driver.flush();
  await drain(driver);
  t.assertArrived([...paid, ...free.slice(-8)]);
}

async function invalidEvents(t) {
  const driver = await t.register();
  assert.equal(await driver.track(""), null, "an event without a name is not recorded");
  const ids = [
    await driver.track("n".repeat(300)),
    await driver.track("large", { text: "x".repeat(20_000) }),
    await driver.track("revenue", { revenue: "a lot", currency: "euro", sku: "a" }),
  ];
  await driver.flush();
  t.assertArrived(ids);
  const [name, large, revenue] = t.server.events.map(({ event }) => event);
  assert.equal(name.name, "n".repeat(255), "a long name is cut");
  assert.equal(large.params?.text, undefined, "params over 16 KiB are left out");
  assert.equal(revenue.revenue ?? null, null, "an unreadable amount is left out");
  assert.equal(revenue.currency ?? null, null, "an unreadable currency is left out");
  assert.deepEqual(revenue.params, { sku: "a" });
  assert.ok((await driver.state()).problems.includes("invalid_revenue"), "the app learns of it");
}

async function ownEventId(t) {
  const driver = await t.register();
  const longest = "ä".repeat(127);
  assert.equal(await driver.track("purchase", undefined, "order-1001"), "order-1001");
  assert.equal(await driver.track("purchase", undefined, longest), longest);
  const tooLong = "ä".repeat(128);
  const replaced = await driver.track("purchase", undefined, tooLong);
  assert.notEqual(replaced, tooLong, "an id of more than 255 bytes is replaced");
  await driver.flush();
  t.assertArrived(["order-1001", longest, replaced]);
  assert.ok((await driver.state()).problems.includes("invalid_event_id"), "the app learns of it");
}

async function globalParams(t) {
  const driver = await t.register();
  await driver.do("setGlobalParams", { params: { plan: "free", theme: "dark" } });
  await driver.track("a", { plan: "pro" });
  await driver.do("setGlobalParams", { params: {} });
  await driver.track("b", { x: 1 });
  await driver.flush();
  const params = t.server.events.map(({ event }) => event.params);
  assert.deepEqual(params[0], { plan: "pro", theme: "dark" }, "an event's own parameter wins");
  assert.deepEqual(params[1], { x: 1 }, "global parameters are those at the time of the call");
}

export const LIMITS = [
  { name: "batch_events", requires: "A request has at most 100 events.", run: batchEvents },
  { name: "batch_bytes", requires: "A request body has at most 512,000 bytes.", run: batchBytes },
  {
    name: "queue_limit",
    requires: "A full queue drops the oldest events without revenue first.",
    run: queueLimit,
  },
  {
    name: "invalid_events",
    requires: "Unreadable or oversized parts of an event are left out, and the event is kept.",
    run: invalidEvents,
  },
  { name: "own_event_id", requires: "track accepts an own event id of 1 to 255 bytes.", run: ownEventId },
  {
    name: "global_params",
    requires: "Global parameters are added to the events tracked after them.",
    run: globalParams,
  },
];
