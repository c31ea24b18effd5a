// Support for browser tests: a server for the example page, and a proxy that can lose responses.

import { readFileSync } from "node:fs";
import { createServer, request, type Server as HttpServer } from "node:http";
import { existsSync } from "node:fs";

const listen = (server: HttpServer): Promise<string> =>
  new Promise((done) => {
    server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${(server.address() as { port: number }).port}`));
  });

const PAGES: Record<string, [string, string]> = {
  "/": ["example/index.html", "text/html; charset=utf-8"],
  "/app.js": ["example/app.js", "text/javascript; charset=utf-8"],
  "/tributary.js": ["dist/tributary.js", "text/javascript; charset=utf-8"],
};

/** Serves the example page. */
export async function servePage(): Promise<{ url: string; stop(): void }> {
  const server = createServer((incoming, outgoing) => {
    const page = PAGES[new URL(incoming.url ?? "/", "http://x").pathname];
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
        outgoing.writeHead(real.statusCode ?? 502, real.headers);
        real.pipe(outgoing);
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
