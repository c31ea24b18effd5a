// The client against a real server. scripts/clients.sh starts two: the second accepts one request per second and key.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { createTributary, TributaryError, type Schemas } from "tributary-client";

const variable = (name: string): string => process.env[name] ?? assert.fail(`${name} is not set`);
const server = variable("TRIBUTARY_SERVER");
const tributary = createTributary({ server: `${server}/`, apiKey: variable("TRIBUTARY_API_KEY") });
const busy = { server: variable("TRIBUTARY_BUSY_SERVER"), apiKey: variable("TRIBUTARY_BUSY_API_KEY") };
const PHONE = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36";

async function createApp(name: string): Promise<string> {
  const app = await tributary.post("/api/v1/apps", { body: { name, webEvents: { enabled: true } } });
  return app.data.id;
}

/** Creates a link to a shop and clicks it. Returns the id of the click. */
async function click(appId: string, slug: string): Promise<string> {
  const params = { path: { appId } };
  const destinationUrl = "https://shop.example.com/start";
  const body = { name: slug, slug, network: "network_a", type: "web_funnel", destinationUrl } as const;
  const link = await tributary.post("/api/v1/apps/{appId}/links", { params, body });
  assert.equal(link.data.slug, slug);
  const path = new URL(link.data.url).pathname;
  const clicked = await fetch(`${server}${path}?fbclid=a`, { redirect: "manual", headers: { "user-agent": PHONE } });
  return /clk_[0-9a-z]+/.exec(clicked.headers.get("location") ?? "")?.[0] ?? assert.fail("no click id");
}

const refused = (code: string, status: number) => (error: unknown) => {
  assert.ok(error instanceof TributaryError);
  assert.deepEqual([error.code, error.status], [code, status], error.message);
  return true;
};

test("a web event counts once, and is in the figures", async () => {
  const appId = await createApp("Shop");
  const arClickId = await click(appId, "typescript-shop");
  const params = { path: { appId } };
  const body = {
    eventId: "order-1",
    eventType: "purchase",
    revenue: "49.90",
    currency: "USD",
    arClickId,
    deviceId: "visitor-1",
    timestampMs: Date.now(),
    sourceUrl: "https://shop.example.com/paid",
  } as const;
  const first = await tributary.post("/api/v1/apps/{appId}/web-events", { params, body });
  const second = await tributary.post("/api/v1/apps/{appId}/web-events", { params, body });
  assert.deepEqual([first.data.duplicate, second.data.duplicate], [false, true]);
  const stats = await tributary.get("/api/v1/apps/{appId}/stats", {
    params: { ...params, query: { groupBy: "network", network: "network_a" } },
  });
  const row = stats.data[0] ?? assert.fail("no row");
  assert.deepEqual([row.network, row.clicks, row.purchases, row.revenue], ["network_a", 1, 1, 49.9]);
  const event: Schemas["EventOut"] | undefined = (
    await tributary.get("/api/v1/apps/{appId}/events", { params: { ...params, query: { eventId: "order-1" } } })
  ).data[0];
  assert.equal(event?.source, "web");
});

test("items are read page after page", async () => {
  const appId = await createApp("Links");
  const params = { path: { appId } };
  const links = Array.from({ length: 25 }, (_, number) => ({ name: `Link ${number}` }));
  await tributary.post("/api/v1/apps/{appId}/links/bulk", { params, body: { links } });
  const names = new Set<string>();
  const query = { limit: 10 };
  for await (const link of tributary.items("/api/v1/apps/{appId}/links", { params: { ...params, query } })) {
    names.add(link.name);
  }
  assert.equal(names.size, 25);
  for await (const link of tributary.items("/api/v1/apps/{appId}/links", { params })) {
    assert.match(link.id, /^lnk_/);
    break;
  }
});

test("an error has its code and its fields", async () => {
  const name = "x".repeat(300);
  const failed = tributary.post("/api/v1/apps", { body: { name, timezone: "Moon/Sea" } });
  await assert.rejects(failed, (error: unknown) => {
    assert.ok(refused("validation_failed", 422)(error) && error instanceof TributaryError);
    assert.deepEqual(error.fields.map(({ field }) => field).sort(), ["name", "timezone"]);
    assert.match(error.requestId ?? "", /^req_/);
    assert.equal(error.retryable, false);
    return true;
  });
  const stranger = createTributary({ server, apiKey: "ak_live_wrong" });
  await assert.rejects(stranger.get("/api/v1/apps"), refused("invalid_api_key", 401));
});

test("deleting returns nothing, and headers are available", async () => {
  const appId = await createApp("Deleted link");
  const params = { path: { appId } };
  const link = await tributary.post("/api/v1/apps/{appId}/links", { params, body: { name: "Old" } });
  const path = { appId, linkId: link.data.id };
  const { response } = await tributary.http.GET("/api/v1/apps/{appId}/links/{linkId}", { params: { path } });
  assert.ok(response.headers.get("ETag"));
  assert.equal(await tributary.delete("/api/v1/apps/{appId}/links/{linkId}", { params: { path } }), undefined);
  const gone = tributary.http.GET("/api/v1/apps/{appId}/links/{linkId}", { params: { path } });
  await assert.rejects(gone, refused("link_not_found", 404));
});

test("an export is a stream", async () => {
  const appId = await createApp("Export");
  const params = { path: { appId }, query: { kind: "clicks", format: "ndjson" } };
  await click(appId, "typescript-export");
  const { data } = await tributary.http.GET("/api/v1/apps/{appId}/export", { params, parseAs: "stream" });
  assert.match(await new Response(data).text(), /^\{"[^\n]*clk_[^\n]*\}\n$/);
});

test("only calls that are safe to repeat are repeated", async () => {
  const impatient = createTributary({ ...busy, retries: 0 });
  const calls = await Promise.allSettled([1, 2, 3].map(() => impatient.get("/api/v1/apps")));
  const [failed] = calls.filter((call) => call.status === "rejected");
  assert.ok(refused("rate_limited", 429)(failed?.reason));
  const patient = createTributary(busy);
  for (let call = 0; call < 3; call++) assert.ok((await patient.get("/api/v1/apps")).data);
  const created = [1, 2, 3].map(() => patient.post("/api/v1/apps", { body: { name: "Not repeated" } }));
  const [unrepeated] = (await Promise.allSettled(created)).filter((call) => call.status === "rejected");
  assert.ok(refused("rate_limited", 429)(unrepeated?.reason));
});

test("an answer of something else is recognised, and its redirects are not followed", async () => {
  const listener = createServer((request, response) => {
    if (request.url === "/api/v1/apps") response.writeHead(307, { location: "/elsewhere" });
    response.end("<html>");
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  assert.ok(address !== null && typeof address === "object");
  const client = createTributary({ server: `http://127.0.0.1:${address.port}`, apiKey: "ak_live_x" });
  await assert.rejects(client.get("/api/v1/apps"), refused("unexpected_response", 307));
  listener.close();
});

test("a server that does not answer is given up", async () => {
  const listener = createServer(() => {});
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  assert.ok(address !== null && typeof address === "object");
  const options = { server: `http://127.0.0.1:${address.port}`, apiKey: "ak_live_x", timeoutMs: 50 };
  await assert.rejects(createTributary(options).get("/api/v1/apps"), { name: "TimeoutError" });
  listener.closeAllConnections();
  listener.close();
});

// The compiler checks these: a build fails if a wrong call has a correct type.
export async function wrongCalls(): Promise<void> {
  // @ts-expect-error there is no such path
  await tributary.get("/api/v1/app");
  // @ts-expect-error the app is missing
  await tributary.get("/api/v1/apps/{appId}/events");
  // @ts-expect-error there is no such filter
  await tributary.get("/api/v1/apps", { params: { query: { archive: true } } });
  // @ts-expect-error a name is required
  await tributary.post("/api/v1/apps", { body: {} });
  // @ts-expect-error an app has no such field
  (await tributary.get("/api/v1/apps")).data[0]?.nam;
  // @ts-expect-error an app is not a list
  tributary.items("/api/v1/apps/{appId}", { params: { path: { appId: "app_1" } } });
}
