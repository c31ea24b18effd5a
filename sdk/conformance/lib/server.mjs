// A server that speaks the protocol, plays faults and records what SDKs send.

import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";
import { violations } from "./check.mjs";
import { elementTexts } from "./json.mjs";

/** Time limit for a request that a scenario waits for. */
const ARRIVAL_MS = 30_000;

export const KEY = "pk_live_conformance";

/** The attribution that the server returns. */
export const ATTRIBUTION = {
  id: "att_01k9z3v7q8e4r9m2x5c6b7n8d4",
  network: "network_a",
  matchType: "click_id",
  confidence: 1,
  linkId: null,
  clickId: null,
  campaign: { id: "238", name: "Spring", adsetId: null, adsetName: null, adId: null, adName: null },
  deepLink: "runner://offer/42",
  customData: {},
  queryParams: {},
  reason: "The click id that the app delivered is genuine.",
  decidedAt: "2026-01-01T00:00:00.000Z",
};

const PORTAL = "<html>Please sign in to this hotel's Wi-Fi.</html>";

const errorBody = (code) => ({ error: { code, message: "Played by the conformance suite.", retryable: false } });

/**
 * What happens to a request:
 * - `ok`: it is processed and answered
 * - `lost`: it is processed, and the connection breaks before the response
 * - `portal`, `emptyObject`, `partial`: a 200 that does not confirm anything
 * - `hold`: it is processed, and answered once the scenario calls `release`
 * - `hang`: it is neither processed nor answered
 * - `{status, code, headers}`: an error response; nothing is processed
 */
export class FaultServer {
  /** Requests that arrived, in order. */
  requests = [];
  /** Accepted events, in order: `{eventId, deviceId, event, text}`. */
  events = [];
  violations = [];
  erased = [];
  sdkEnabled = true;
  /** Whether every connection breaks before the request is read. */
  offline = false;
  /** Number of requests, including those that broke. */
  attempts = 0;
  /** Whether confirmed events may arrive again, for example after a kill. */
  allowsRepeats = false;
  /** Whether several processes may send at once. */
  allowsConcurrency = false;
  /** Returns a code if the server refuses the whole batch. */
  refuses = () => undefined;
  /** Returns whether the server rejects this event. */
  rejects = () => false;

  #server;
  #behaviours = new Map();
  #held = [];
  #confirmed = new Set();
  #known = new Map();
  /** Erase tokens by device id: `{token, isConfirmed}`. */
  #tokens = new Map();
  #sending = 0;
  #waiters = [];

  async start() {
    this.#server = createServer((request, response) => void this.#receive(request, response));
    await new Promise((done) => this.#server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Sets the behaviour of an endpoint, or of all of them (`*`). */
  play(endpoint, behaviour) {
    if (endpoint === "*") this.#behaviours.clear();
    this.#behaviours.set(endpoint, behaviour);
  }

  /** Sends the responses that are held back, and answers at once from now on. */
  release() {
    this.play("*", "ok");
    this.#held.splice(0).forEach((respond) => respond());
  }

  /** Returns the requests to an endpoint. */
  to(endpoint) {
    return this.requests.filter((request) => request.endpoint === endpoint);
  }

  /** Waits until `count` requests to an endpoint have arrived. */
  async arrival(endpoint, count = 1) {
    const isThere = () => this.to(endpoint).length >= count;
    if (isThere()) return;
    await new Promise((done, failed) => {
      const timer = setTimeout(() => {
        failed(new Error(`${this.to(endpoint).length} of ${count} requests to ${endpoint} arrived`));
      }, ARRIVAL_MS);
      this.#waiters.push(() => {
        if (!isThere()) return;
        clearTimeout(timer);
        done();
      });
    });
  }

  async #receive(incoming, outgoing) {
    this.attempts++;
    // A reset, because some HTTP clients wait for ever after a connection that closes cleanly.
    if (this.offline) return void incoming.socket.resetAndDestroy();
    const raw = await read(incoming);
    // The process was killed while it sent the request.
    if (!raw) return;
    const url = new URL(incoming.url, this.url);
    // The target of a captive portal's redirect.
    if (!url.pathname.startsWith("/api/track/")) {
      return void outgoing.writeHead(200, { Connection: "close" }).end(PORTAL);
    }
    const endpoint = url.pathname.replace(/^\/api\/track\//, "");
    const plain = incoming.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw;
    const text = plain.toString("utf8");
    const body = parse(plain, text);
    const key = incoming.headers["x-tributary-key"] ?? url.searchParams.get("key");
    const request = { endpoint, body, text, query: url.searchParams, headers: incoming.headers };
    const facts = { method: incoming.method, contentType: incoming.headers["content-type"], key, expectedKey: KEY };
    violations({ endpoint, body, size: plain.length, ...facts }).forEach((one) => this.#violation(endpoint, one));
    if (endpoint === "configure") this.#checkToken(body);
    this.requests.push(request);
    const behaviour = this.#behaviours.get(endpoint) ?? this.#behaviours.get("*") ?? "ok";
    if (endpoint === "events" && ++this.#sending > 1 && !this.allowsConcurrency) {
      this.#violation(endpoint, "two requests are in progress; send one at a time, to keep the order");
    }
    const answer = this.#answer(request, behaviour);
    const respond = () => {
      if (endpoint === "events") this.#sending--;
      const isConfirmed = endpoint === "configure" && answer?.registers;
      if (isConfirmed) this.#tokens.set(body.deviceId, { ...this.#tokens.get(body.deviceId), isConfirmed });
      if (answer === undefined) return void incoming.socket.resetAndDestroy();
      // A new connection for each request, so that HTTP clients do not repeat requests by themselves.
      outgoing.writeHead(answer.status, { Connection: "close", ...answer.headers });
      outgoing.end(answer.body);
    };
    if (behaviour === "hold" || behaviour === "hang") this.#held.push(respond);
    else respond();
    this.#waiters.forEach((waiter) => waiter());
  }

  /** Checks the rule that every `configure` has the device's erase token, until a response has confirmed it. */
  #checkToken(body) {
    const { deviceId, eraseToken } = body ?? {};
    const known = this.#tokens.get(deviceId);
    if (!eraseToken && !known?.isConfirmed) this.#violation("configure", "eraseToken is missing, and not confirmed yet");
    if (eraseToken && known?.token && known.token !== eraseToken) this.#violation("configure", "eraseToken has changed");
    if (eraseToken && !known) this.#tokens.set(deviceId, { token: eraseToken, isConfirmed: false });
  }

  #violation(endpoint, what) {
    this.violations.push(`${endpoint}: ${what}`);
  }

  #answer(request, behaviour) {
    if (behaviour === "portal") {
      return { status: 200, headers: { "Content-Type": "text/html" }, body: PORTAL };
    }
    if (behaviour === "hang") return undefined;
    if (behaviour === "emptyObject") return json(200, {});
    if (typeof behaviour === "object") {
      return json(behaviour.status, errorBody(behaviour.code ?? "internal_error"), behaviour.headers);
    }
    if (behaviour === "partial") return json(202, { data: [] });
    const answer = this.#process(request, behaviour !== "lost");
    return behaviour === "lost" ? undefined : answer;
  }

  #process({ endpoint, body, text }, isDelivered) {
    if (endpoint === "erase") {
      this.erased.push(body);
      return json(200, { data: { status: "erased" } });
    }
    if (!this.sdkEnabled) {
      const stop = { sdkEnabled: false, firstOpen: false, attribution: null, opened: null, skan: null };
      return endpoint === "configure" ? json(200, { data: stop }) : json(403, errorBody("sdk_disabled"));
    }
    switch (endpoint) {
      case "configure": {
        const data = { sdkEnabled: true, firstOpen: true, attribution: ATTRIBUTION, opened: null, skan: null };
        return { ...json(200, { data }), registers: true };
      }
      case "events": {
        const refusal = this.refuses(body);
        if (refusal) return json(422, errorBody(refusal));
        return json(202, { data: this.#accept(body, text, isDelivered) });
      }
      case "identify":
        return { status: 204, headers: {} };
      case "skan": {
        const data = {
          version: 0,
          enabled: false,
          currency: "USD",
          maxAgeSeconds: 604800,
          rates: {},
          windows: [],
          server: {},
        };
        return json(200, { data }, { ETag: '"1"' });
      }
      case "attestation-challenge":
        return json(200, { data: { challenge: null, expiresAt: null } });
      default:
        return json(404, errorBody("not_found"));
    }
  }

  #accept(body, text, isDelivered) {
    if (!Array.isArray(body?.events)) return [];
    const texts = elementTexts(text, "events");
    return body.events.map((event, at) => {
      const { eventId } = event;
      if (this.#confirmed.has(eventId) && !this.allowsRepeats) {
        this.#violation("events", `${eventId} was confirmed, and is sent again`);
      }
      if (isDelivered) this.#confirmed.add(eventId);
      if (this.rejects(event)) {
        const details = [{ field: "name", code: "unknown_value", message: "Rejected by the conformance suite." }];
        return {
          eventId,
          status: "rejected",
          error: { code: "validation_failed", message: "Event rejected.", details },
        };
      }
      const known = this.#known.get(eventId);
      if (!known) {
        this.#known.set(eventId, { text: texts[at], deviceId: body.deviceId });
        this.events.push({ eventId, deviceId: body.deviceId, event, text: texts[at] });
        return { eventId, status: "accepted" };
      }
      if (known.text !== texts[at]) this.#violation("events", `${eventId} is resent with other bytes`);
      if (known.deviceId !== body.deviceId) this.#violation("events", `${eventId} is resent with another deviceId`);
      return { eventId, status: "duplicate" };
    });
  }
}

/** Returns the body of a request, or undefined if the connection broke before its end. */
async function read(incoming) {
  const chunks = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk);
  } catch {
    return undefined;
  }
  return incoming.complete ? Buffer.concat(chunks) : undefined;
}

function parse(raw, text) {
  try {
    return Buffer.from(text, "utf8").equals(raw) ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

const json = (status, body, headers = {}) => ({
  status,
  headers: { "Content-Type": "application/json", ...headers },
  body: JSON.stringify(body),
});
