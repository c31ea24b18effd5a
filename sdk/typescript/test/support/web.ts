// What the browser tests need around the browser: the example page on an origin of its own, and a way to the server
// that loses answers.

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
  const server = createServer((asked, answer) => {
    const page = PAGES[new URL(asked.url ?? "/", "http://x").pathname];
    if (!page) return void answer.writeHead(404).end();
    answer.writeHead(200, { "Content-Type": page[1] }).end(readFileSync(page[0]));
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

/** A way to the server. */
export class Proxy {
  /** Whether the answers to events get lost. */
  losesAnswers = false;
  /** Batches that were passed on. */
  batches = 0;
  readonly beacons: string[] = [];
  url = "";
  private readonly server: HttpServer;

  constructor(target: string) {
    this.server = createServer((asked, answer) => {
      const isEvents = asked.method === "POST" && (asked.url ?? "").startsWith("/api/track/events");
      if (isEvents && asked.url!.includes("?key=")) this.beacons.push(asked.headers["content-type"] ?? "");
      const isLost = isEvents && this.losesAnswers;
      const options = { method: asked.method, headers: asked.headers };
      const onward = request(target + asked.url, options, (real) => {
        if (isEvents) this.batches++;
        if (isLost) {
          real.resume();
          real.on("end", () => answer.destroy());
          return;
        }
        answer.writeHead(real.statusCode ?? 502, real.headers);
        real.pipe(answer);
      });
      onward.on("error", () => answer.destroy());
      asked.pipe(onward);
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

/** The browser of this machine. */
export function browserPath(): string {
  const places = [
    process.env["CHROMIUM_BIN"],
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
  ];
  const found = places.find((place) => place && existsSync(place));
  if (!found) throw new Error("no Chromium; CHROMIUM_BIN may name one");
  return found;
}
