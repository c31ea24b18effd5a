// Tests of the example page in Chromium with a real server.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { Server, until, type App, type LoggedEvent } from "./support/server";
import { browserPath, Proxy, servePage } from "./support/web";

let server: Server;
let proxy: Proxy;
let site: { url: string; stop(): void };
let browser: Browser;

before(async () => {
  server = await Server.start();
  proxy = new Proxy(server.url);
  await proxy.start();
  site = await servePage();
  browser = await chromium.launch({ executablePath: browserPath(), args: ["--no-sandbox", "--disable-gpu"] });
});
after(async () => {
  await browser?.close();
  site?.stop();
  proxy?.stop();
  await server?.stop();
});

/** Creates an app and a separate browser profile. */
async function profile(): Promise<{ app: App; context: BrowserContext; open(more?: string): Promise<Page> }> {
  proxy.losesAnswers = false;
  const app = await server.app();
  const context = await browser.newContext();
  const open = async (more = ""): Promise<Page> => {
    const page = await context.newPage();
    await page.goto(`${site.url}/?key=${app.key}&baseUrl=${encodeURIComponent(proxy.url)}${more}`);
    return page;
  };
  return { app, context, open };
}

/** Returns the ids of the events that a page has tracked. */
const tracked = (page: Page): Promise<string[]> => page.evaluate("Promise.all(window.tracked)");

/** Tracks events in a page and returns their ids. */
const track = (page: Page, name: string, count: number): Promise<string[]> =>
  page.evaluate(
    `Promise.all(Array.from({length: ${count}}, (_, n) => Tributary.trackEvent(${JSON.stringify(name)}, {n})))`,
  );

/**
 * Waits until the queue in localStorage is empty. The server stores events before the page reads
 * the response, so an event on the server may still be in the queue.
 */
const emptyQueue = async (page: Page): Promise<void> => {
  await page.waitForFunction("Object.keys(localStorage).filter(k => k.includes('.q.')).length === 0");
};

async function assertOnce(app: App, ids: string[]): Promise<LoggedEvent[]> {
  await until(async () => (await server.events(app)).length >= ids.length, `${ids.length} events`);
  const events = await server.events(app);
  assert.deepEqual(events.map(({ eventId }) => eventId).sort(), [...ids].sort());
  return events;
}

test("the example page sends events, revenue and identity, and shows the attribution", async () => {
  const { app, context, open } = await profile();
  const page = await open();
  const bodies: string[] = [];
  page.on("request", (request) => bodies.push(request.url() + (request.postData() ?? "")));
  await page.click("#view");
  await page.click("#purchase");
  await page.fill("#email", "Joe@Example.com");
  await page.fill("#phone", "+1 (415) 555-2671");
  await page.fill("#user", "user-42");
  await page.check("#consent");
  await page.click("#identify");
  await page.waitForFunction("document.getElementById('attribution').textContent.includes('organic')");
  const events = await assertOnce(app, await tracked(page));
  assert.deepEqual(
    events.map(({ name }) => name),
    ["page_opened", "view_content", "purchase"],
  );
  assert.equal(events[2]!.revenue!.amount, 9.99);
  assert.equal(events[0]!.deviceId, await page.textContent("#device"));
  await until(() => bodies.some((body) => body.includes("emailGoogle") || body.includes('"matching"')), "identify");
  const sent = bodies.join("\n").toLowerCase();
  for (const clear of ["joe@", "example.com", "4155552671", "555-2671"]) assert.ok(!sent.includes(clear), clear);
  assert.ok(sent.includes("2481f36dfc515ca76451aaadf1399026942a01ee50c6d0a61988b43cef039bc2"));
  await context.close();
});

test("sends queued events when the browser is online again", async () => {
  const { app, context, open } = await profile();
  const page = await open();
  await until(async () => (await server.events(app)).length === 1, "the first event");
  await emptyQueue(page);
  await context.setOffline(true);
  await track(page, "offline", 3);
  await page.click("#flush");
  await page.waitForFunction("document.getElementById('log').textContent.includes('queue not sent completely')");
  const ids = await page.evaluate<string[]>(
    "Object.keys(localStorage).filter(k => k.includes('.q.')).map(k => k.split('.').pop())",
  );
  assert.equal(ids.length, 3);
  await context.setOffline(false);
  await assertOnce(app, [...(await tracked(page)), ...ids]);
  await emptyQueue(page);
  await context.close();
});

test("sends a beacon when a page is closed before sending", async () => {
  const { app, context, open } = await profile();
  const page = await open();
  await until(async () => (await server.events(app)).length === 1, "the first event");
  const first = await tracked(page);
  const beacons = proxy.beacons.length;
  const ids = await track(page, "leaving", 5);
  await page.close({ runBeforeUnload: true });
  const events = await assertOnce(app, [...first, ...ids]);
  assert.deepEqual(
    events.slice(1).map(({ params }) => params!["n"]),
    [0, 1, 2, 3, 4],
  );
  assert.ok(proxy.beacons.length > beacons);
  assert.match(proxy.beacons.pop()!, /^text\/plain/);
  // The next page sends the queued events again, and the server stores them once.
  const again = await open();
  await emptyQueue(again);
  await assertOnce(app, [...first, ...ids, ...(await tracked(again))]);
  await context.close();
});

test("stores each event once if a page is closed during a request and the response is lost", async () => {
  const { app, context, open } = await profile();
  const page = await open();
  await until(async () => (await server.events(app)).length === 1, "the first event");
  const ids = await tracked(page);
  proxy.losesAnswers = true;
  const sent = proxy.batches;
  ids.push(...(await track(page, "mid-send", 120)));
  await page.evaluate("void Tributary.flush()");
  await until(() => proxy.batches > sent, "a batch on its way");
  await page.close();
  proxy.losesAnswers = false;
  const again = await open();
  await emptyQueue(again);
  const events = await assertOnce(app, [...ids, ...(await tracked(again))]);
  const own = events.filter(({ name }) => name === "mid-send").map(({ params }) => params!["n"]);
  assert.deepEqual(
    own,
    Array.from({ length: 120 }, (_, n) => n),
  );
  await context.close();
});

test("two tabs share one device and send every event once", async () => {
  const { app, context, open } = await profile();
  const [one, two] = await Promise.all([open(), open()]);
  proxy.losesAnswers = true;
  const both = await Promise.all([track(one, "one", 70), track(two, "two", 70)]);
  await new Promise((done) => setTimeout(done, 1_500));
  proxy.losesAnswers = false;
  const ids = [...both.flat(), ...(await tracked(one)), ...(await tracked(two))];
  const events = await assertOnce(app, ids);
  assert.equal(new Set(events.map(({ deviceId }) => deviceId)).size, 1);
  for (const name of ["one", "two"]) {
    const own = events.filter((event) => event.name === name).map(({ params }) => params!["n"]);
    assert.deepEqual(
      own,
      Array.from({ length: 70 }, (_, n) => n),
    );
  }
  await context.close();
});

test("IndexedDB persists the queue", async () => {
  const { app, context, open } = await profile();
  const page = await open("&storage=indexeddb");
  await until(async () => (await server.events(app)).length === 1, "the first event");
  const ids = await tracked(page);
  await context.setOffline(true);
  ids.push(...(await track(page, "kept", 5)));
  await page.close();
  await context.setOffline(false);
  const again = await open("&storage=indexeddb");
  await until(async () => (await again.evaluate("Tributary.flush()")) === true, "an empty queue");
  const events = await assertOnce(app, [...ids, ...(await tracked(again))]);
  assert.equal(new Set(events.map(({ deviceId }) => deviceId)).size, 1);
  assert.equal(await again.evaluate("localStorage.length"), 0);
  await context.close();
});
