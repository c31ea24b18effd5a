// Support for browser tests: a server for the example page, and a proxy that can lose responses.

import { readFileSync } from "node:fs";
import { createServer, request, type IncomingHttpHeaders, type Server as HttpServer } from "node:http";
import { existsSync } from "node:fs";

const listen = (server: HttpServer): Promise<string> =>
  new Promise((done) => {
    server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${(server.address() as { port: number }).port}`));
  });

const PAGES: Record<string, [string, string]> = {
  "/": ["examples/html/index.html", "text/html; charset=utf-8"],
  "/app.js": ["examples/html/app.js", "text/javascript; charset=utf-8"],
  "/tributary.js": ["dist/tributary.js", "text/javascript; charset=utf-8"],
};

/** A page that loads the SDK and does nothing. */
export const BLANK = "/blank";
const BLANK_PAGE =
  '<!doctype html><title>Home</title><link rel="icon" href="data:," /><script src="tributary.js"></script>';

/** Serves the example page, and a blank one. */
export async function servePage(): Promise<{ url: string; stop(): void }> {
  const server = createServer((incoming, outgoing) => {
    const { pathname } = new URL(incoming.url ?? "/", "http://x");
    if (pathname === BLANK) return void outgoing.writeHead(200, { "Content-Type": "text/html" }).end(BLANK_PAGE);
    const page = PAGES[pathname];
    if (!page) return void outgoing.writeHead(404).end();
    outgoing.writeHead(200, { "Content-Type": page[1] }).end(readFileSync(page[0]));
  });
  const url = await listen(server);
  return {
    url,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A proxy in front of the server. */
export class Proxy {
  /** Whether responses to events are dropped. */
  losesAnswers = false;
  /** Delay of `configure` responses. */
  configureDelayMs = 0;
  /** Whether CORS headers are removed, as a misconfigured proxy does. */
  removesCors = false;
  /** Forwarded batches. */
  batches = 0;
  readonly beacons: string[] = [];
  url = "";
  private readonly server: HttpServer;

  constructor(target: string) {
    this.server = createServer((incoming, outgoing) => {
      const isEvents = incoming.method === "POST" && (incoming.url ?? "").startsWith("/api/track/events");
      if (isEvents && incoming.url!.includes("?key=")) this.beacons.push(incoming.headers["content-type"] ?? "");
      const isLost = isEvents && this.losesAnswers;
      const options = { method: incoming.method, headers: incoming.headers };
      const onward = request(target + incoming.url, options, (real) => {
        if (isEvents) this.batches++;
        if (isLost) {
          real.resume();
          real.on("end", () => outgoing.destroy());
          return;
        }
        const delay = (incoming.url ?? "").startsWith("/api/track/configure") ? this.configureDelayMs : 0;
        setTimeout(() => {
          outgoing.writeHead(real.statusCode ?? 502, this.removesCors ? withoutCors(real.headers) : real.headers);
          real.pipe(outgoing);
        }, delay);
      });
      onward.on("error", () => outgoing.destroy());
      incoming.pipe(onward);
    });
  }

  async start(): Promise<void> {
    this.url = await listen(this.server);
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

const withoutCors = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("access-control-")));

/** An ad network that accepts everything, in the form of Meta's Conversions API. */
export class AdNetwork {
  /** Bodies of the requests. */
  readonly received: string[] = [];
  url = "";
  private readonly server = createServer((incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk: Buffer) => (body += chunk.toString()));
    incoming.on("end", () => {
      this.received.push(body);
      const count = (JSON.parse(body) as { data: unknown[] }).data.length;
      outgoing.writeHead(200, { "Content-Type": "application/json" });
      outgoing.end(JSON.stringify({ events_received: count, messages: [], fbtrace_id: "A" }));
    });
  });

  async start(): Promise<void> {
    this.url = await listen(this.server);
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** Returns the path of an installed Chromium. */
export function browserPath(): string {
  const places = [
    process.env["CHROMIUM_BIN"],
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
  ];
  const found = places.find((place) => place && existsSync(place));
  if (!found) throw new Error("Chromium not found; set CHROMIUM_BIN");
  return found;
}
