// Tests with the real server: every event arrives exactly once, whatever fails on the way.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { leaseLock } from "../src/lock";
import { native } from "../src/native";
import { memoryStorage } from "../src/storage";
import { Tributary } from "../src/advanced";
import type { ConversionValue, Options, Storage } from "../src/types";
import { FakeClock } from "./support/clock";
import { fileStorage } from "./support/files";
import { Network } from "./support/network";
import { Server, until, type App } from "./support/server";

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server.stop());

/** Returns the options of a device. */
function options(app: App, network: Network, more: Partial<Options> = {}): Options {
  return {
    key: app.key,
    baseUrl: server.url,
    device: { platform: "android", osVersion: "14" },
    storage: memoryStorage(),
    fetch: network.fetch,
    flushDelayMs: 0,
    native,
    logLevel: "none",
    ...more,
  };
}

/** Asserts that the app's log has exactly these ids in this order. */
async function assertLog(app: App, ids: (string | null)[]): Promise<void> {
  const events = await server.events(app);
  assert.deepEqual(
    events.map(({ eventId }) => eventId),
    ids,
  );
}

test("stores events once and in order if responses are lost", async () => {
  const app = await server.app();
  const network = new Network();
  const clock = new FakeClock();
  const sdk = new Tributary();
  // Of the first twelve requests, the responses to every second one are lost.
  network.script = Array.from({ length: 12 }, (_, i) => (i % 2 ? "fine" : "lost"));
  await sdk.configure(options(app, network, { clock }));
  const ids: (string | null)[] = [];
  for (let n = 0; n < 330; n++) ids.push(await sdk.trackEvent(`e${n}`, { n }));
  for (let tries = 0; !(await sdk.flush()); tries++) assert.ok(tries < 20);
  assert.ok(network.batches.length > 4, "some requests were repeated");
  await assertLog(app, ids);
  await sdk.shutdown();
});

test("loses nothing during an hour offline and attributes the first launch afterwards", async () => {
  const app = await server.app({ android: { packageName: "com.example.sdk" } });
  const link = { name: "Spring", slug: `spring-${Date.now()}`, network: "network_a" };
  await server.rest("POST", `/apps/${app.id}/links`, link);
  const phone = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36";
  const tap = await fetch(`${server.url}/c/${link.slug}?fbclid=abc`, {
    redirect: "manual",
    headers: { "User-Agent": phone },
  });
  const referrer = new URL(tap.headers.get("location")!).searchParams.get("referrer")!;

  const network = new Network();
  // The device's clock starts an hour ago, so that it shows the real time at the end.
  const clock = new FakeClock(Date.now() - 3_600_000, network.idle);
  const sdk = new Tributary();
  network.mode = "offline";
  await sdk.configure(options(app, network, { clock, providers: { installReferrer: () => ({ referrer }) } }));
  const ids: (string | null)[] = [];
  for (let minute = 0; minute < 60; minute++) {
    ids.push(await sdk.trackEvent("tick", { minute }));
    await clock.pass(60_000);
  }
  assert.ok(network.requests.length < 40, `${network.requests.length} attempts in an hour`);
  network.mode = "fine";
  await clock.pass(300_000);
  await assertLog(app, ids);
  const events = await server.events(app);
  assert.ok(events.every(({ attribution }) => attribution?.network === "network_a"));
  assert.equal((await sdk.getAttribution())!.network, "network_a");
  await sdk.shutdown();
});

/** Starts a process that tracks five events, and kills it once it has printed `word`. */
async function kill(folder: string, app: App, prefix: string, mode: string, word: string): Promise<void> {
  const victim = fileURLToPath(new URL("support/victim.js", import.meta.url));
  const child = spawn(process.execPath, [victim, folder, server.url, app.key, prefix, mode], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((done, failed) => {
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes(word)) child.kill("SIGKILL");
    });
    child.once("exit", () => (output.includes(word) ? done() : failed(new Error(`the process exited: ${output}`))));
  });
}

test("stores all events once if the app is killed before sending or before the response", async () => {
  const app = await server.app();
  const folder = mkdtempSync(join(tmpdir(), "tributary-victim-"));
  try {
    await kill(folder, app, "queued", "offline", "tracked");
    await kill(folder, app, "sent", "lost", "sent");
    await kill(folder, app, "again", "offline", "tracked");
    const network = new Network();
    const sdk = new Tributary();
    await sdk.configure(options(app, network, { storage: fileStorage(folder) }));
    await sdk.trackEvent("last");
    await until(() => sdk.flush(), "an empty queue");
    const names = ["queued", "sent", "again"].flatMap((prefix) => [1, 2, 3, 4, 5].map((n) => `${prefix}${n}`));
    const events = await server.events(app);
    assert.deepEqual(
      events.map(({ name }) => name),
      [...names, "last"],
    );
    assert.equal(new Set(events.map(({ deviceId }) => deviceId)).size, 1);
    await sdk.shutdown();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("sends every event once and in order if the clock changes, even across a restart", async () => {
  const app = await server.app();
  const network = new Network();
  const clock = new FakeClock();
  const storage = memoryStorage();
  const day = 86_400_000;
  const ids: (string | null)[] = [];
  let sdk = new Tributary();
  const begin = (): Promise<void> => sdk.configure(options(app, network, { clock, storage }));
  network.mode = "offline";
  await begin();
  for (const step of [0, 2 * day, -5 * day, 60_000, -500, 3 * day]) {
    clock.set(step);
    ids.push(await sdk.trackEvent(`step ${step}`), await sdk.trackEvent("more"));
    await clock.pass(1_000);
  }
  await sdk.shutdown();
  // Back to before 1970.
  clock.set(-70 * 365 * day);
  sdk = new Tributary();
  await begin();
  ids.push(await sdk.trackEvent("after the restart"));
  network.mode = "fine";
  assert.equal(await sdk.flush(), true);
  const sent = network.requests.flatMap(({ body }) => body.events ?? []).map(({ eventId }) => eventId);
  assert.deepEqual(sent, ids);
  const events = await server.events(app);
  assert.deepEqual(events.map(({ eventId }) => eventId).sort(), [...ids].sort());
  await sdk.shutdown();
});

test("two tabs send every event once", async () => {
  const app = await server.app();
  const network = new Network();
  const storage: Storage = { ...memoryStorage(), shared: true };
  network.script = ["lost", "fine", "lost", "fine", "lost"];
  const tabs = [new Tributary(), new Tributary()];
  const device = { platform: "web" } as const;
  const start = (tab: Tributary): Promise<void> =>
    tab.configure(options(app, network, { storage, device, lock: leaseLock(storage) }));
  await Promise.all(tabs.map(start));
  const ids: (string | null)[] = [];
  for (let n = 0; n < 60; n++) {
    for (const [at, tab] of tabs.entries()) ids.push(await tab.trackEvent(`tab ${at}`, { n }));
    if (n % 20 === 0) await new Promise((done) => setTimeout(done, 30));
  }
  await until(async () => (await tabs[0]!.flush()) || (await tabs[1]!.flush()), "an empty queue");
  const events = await server.events(app);
  assert.deepEqual(events.map(({ eventId }) => eventId).sort(), [...ids].sort());
  for (const at of [0, 1]) {
    const own = events.filter(({ name }) => name === `tab ${at}`).map(({ params }) => params!["n"]);
    assert.deepEqual(
      own,
      Array.from({ length: 60 }, (_, n) => n),
    );
  }
  assert.equal(new Set(events.map(({ deviceId }) => deviceId)).size, 1);
  await Promise.all(tabs.map((tab) => tab.shutdown()));
});

test("revenue, identity and parameters arrive unchanged", async () => {
  const app = await server.app();
  const network = new Network();
  const sdk = new Tributary();
  await sdk.configure(options(app, network));
  await sdk.setUserId("user-42");
  await sdk.setAdvancedMatching(" Joe@EXAMPLE.com ", "+1 (415) 555-2671");
  await sdk.setConsent({ adUserData: true, tracking: "denied" });
  await sdk.trackEvent("purchase", { revenue: 0.1 + 0.2, currency: "eur", sku: "coins", nested: { deep: [1, "ä"] } });
  await until(() => sdk.flush(), "an empty queue");
  const [event] = await server.events(app);
  assert.equal(event!.userId, "user-42");
  assert.equal(event!.revenue!.amount, 0.3);
  assert.equal(event!.revenue!.currency, "EUR");
  assert.deepEqual(event!.params, { sku: "coins", nested: { deep: [1, "ä"] } });
  await sdk.shutdown();
});

test("the consent of each event arrives, also of events before reset", async () => {
  const app = await server.app();
  const network = new Network();
  const sdk = new Tributary();
  await sdk.configure(options(app, network, { consent: { adUserData: false } }));
  await sdk.trackEvent("refused");
  await sdk.setConsent({ adUserData: true, tracking: "authorized" });
  await sdk.trackEvent("granted");
  const before = await sdk.getDeviceId();
  await sdk.reset();
  await sdk.trackEvent("not asked");
  await until(() => sdk.flush(), "an empty queue");
  const none = { adUserData: null, adPersonalization: null, tracking: null };
  const after = await sdk.getDeviceId();
  assert.notEqual(after, before);
  assert.deepEqual(
    (await server.events(app)).map(({ name, deviceId, consent }) => [name, deviceId, consent]),
    [
      ["refused", before, { ...none, adUserData: false }],
      ["granted", before, { ...none, adUserData: true, tracking: "authorized" }],
      ["not asked", after, none],
    ],
  );
  await sdk.shutdown();
});

test("eraseMe erases the device on the server, even if the response is lost", async () => {
  const app = await server.app();
  const network = new Network();
  const storage = memoryStorage();
  let sdk = new Tributary();
  await sdk.configure(options(app, network, { storage, userId: "user-42" }));
  await sdk.trackEvent("before");
  await until(() => sdk.flush(), "an empty queue");
  const deviceId = await sdk.getDeviceId();
  network.script = ["lost"];
  assert.equal(await sdk.eraseMe(), false);
  await sdk.shutdown();
  sdk = new Tributary();
  await sdk.configure(options(app, network, { storage }));
  await sdk.trackEvent("after");
  await until(() => sdk.flush(), "an empty queue");
  assert.deepEqual(
    network.requests.slice(-4).map(({ endpoint }) => endpoint),
    ["erase", "erase", "configure", "events"],
  );
  await assert.rejects(server.rest("GET", `/apps/${app.id}/devices/${deviceId}`), /404/);
  const [erased, fresh] = await server.events(app);
  assert.notEqual(erased!.deviceId, deviceId);
  assert.equal(erased!.userId, null);
  assert.equal(fresh!.deviceId, await sdk.getDeviceId());
  await sdk.shutdown();
});

test("optOut: the server knows the refusal, and gets nothing more", async () => {
  const app = await server.app();
  const network = new Network();
  const sdk = new Tributary();
  await sdk.configure(options(app, network));
  await sdk.trackEvent("before");
  await until(() => sdk.flush(), "an empty queue");
  const deviceId = await sdk.getDeviceId();
  await sdk.optOut();
  await until(() => sdk.flush(), "the opt-out");
  assert.equal(await sdk.trackEvent("after"), null);
  interface Device {
    data: { device: { consent: { adUserData: boolean; adPersonalization: boolean } } };
  }
  const { data } = await server.rest<Device>("GET", `/apps/${app.id}/devices/${deviceId}`);
  const { consent } = data.device;
  assert.deepEqual([consent.adUserData, consent.adPersonalization], [false, false]);
  assert.deepEqual(
    (await server.events(app)).map(({ name }) => name),
    ["before"],
  );
  await sdk.shutdown();
});

test("revenue.json: the server accepts and rejects the same amounts as the table", async () => {
  const app = await server.app();
  const path = "../tables/revenue.json";
  interface Row {
    name: string;
    kind: string;
    input: string;
    amount: string | null;
  }
  const { cases } = JSON.parse(readFileSync(path, "utf8")) as { cases: Row[] };
  const events = cases.map(({ kind, input }, i) => {
    const revenue = kind === "text" ? JSON.stringify(input) : input;
    return `{"eventId":"row ${i}","name":"row","timestampMs":${Date.now() - 1_000 + i},"revenue":${revenue},"currency":"EUR"}`;
  });
  const answer = await fetch(`${server.url}/api/track/events`, {
    method: "POST",
    headers: { "X-Tributary-Key": app.key, "Content-Type": "application/json" },
    body: `{"deviceId":"table","events":[${events.join(",")}]}`,
  });
  const { data } = (await answer.json()) as { data: { status: string }[] };
  cases.forEach(({ name, amount }, i) =>
    assert.equal(data[i]!.status, amount === null ? "rejected" : "accepted", name),
  );
  const read = new Map((await server.events(app)).map(({ eventId, revenue }) => [eventId, revenue]));
  cases.forEach(({ name, amount }, i) => {
    if (amount !== null) assert.equal(read.get(`row ${i}`)!.amount, Number(amount), name);
  });
});

test("sdk.enabled: false stops the SDK, true enables it at the next start", async () => {
  const app = await server.app();
  const network = new Network();
  const storage = memoryStorage();
  let sdk = new Tributary();
  await sdk.configure(options(app, network, { storage }));
  await sdk.trackEvent("before");
  await until(() => sdk.flush(), "an empty queue");
  await server.rest("PATCH", `/apps/${app.id}`, { sdk: { enabled: false } });
  await sdk.trackEvent("rejected");
  assert.equal(await sdk.flush(), false);
  assert.equal(await sdk.trackEvent("not even stored"), null);
  await sdk.shutdown();
  await server.rest("PATCH", `/apps/${app.id}`, { sdk: { enabled: true } });
  sdk = new Tributary();
  await sdk.configure(options(app, network, { storage }));
  await until(() => sdk.flush(), "a response");
  await sdk.trackEvent("after");
  await until(() => sdk.flush(), "an empty queue");
  assert.deepEqual(
    (await server.events(app)).map(({ name }) => name),
    ["before", "after"],
  );
  await sdk.shutdown();
});

test("evaluates the server's conversion-value configuration on the device", async () => {
  const app = await server.app();
  const value = (name: string, fineValue: number, event: string, condition: object): object => ({
    name,
    fineValue,
    coarseValue: "low",
    conditions: [{ event, ...condition }],
  });
  const values = [value("Paid", 40, "purchase", { minRevenue: 10 }), value("Install", 2, "install", { minCount: 1 })];
  await server.rest("PUT", `/apps/${app.id}/skan`, {
    enabled: true,
    currency: "USD",
    windows: [{ index: 0, enabled: true, values }],
  });
  const network = new Network();
  const clock = new FakeClock();
  const reported: number[] = [];
  const sdk = new Tributary();
  const onConversionValue = ({ fineValue }: ConversionValue): void => void reported.push(fineValue);
  await sdk.configure(options(app, network, { clock, device: { platform: "ios" }, onConversionValue }));
  await until(() => reported.length === 2, "the value of the install");
  await sdk.trackEvent("purchase", { revenue: "9.99", currency: "USD" });
  await sdk.trackEvent("purchase", { revenue: "0.01", currency: "USD" });
  await until(() => reported.length === 3, "the value of the purchase");
  assert.deepEqual(reported, [0, 2, 40]);
  // After two hours: one request without ETag, then one with it that returns 304.
  for (let hour = 0; hour < 2; hour++) {
    await sdk.flush();
    clock.set(3_600_000);
    assert.equal(await sdk.flush(), true);
  }
  assert.equal(network.count("skan"), 2);
  assert.deepEqual(reported, [0, 2, 40]);
  await sdk.shutdown();
});
