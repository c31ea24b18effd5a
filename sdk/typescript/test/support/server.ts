// The real server in a temporary folder.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Returns the path of the binary: TRIBUTARY_BIN or the debug build. */
function binary(): string {
  const target = resolve("../..", process.env["CARGO_TARGET_DIR"] ?? "target");
  const path = process.env["TRIBUTARY_BIN"] ?? join(target, "debug/tributary");
  if (!existsSync(path)) throw new Error(`no binary at ${path}; run cargo build`);
  return path;
}

export function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const probe = createServer();
    probe.once("error", failed);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => done(port));
    });
  });
}

/** An event in the event log. */
export interface LoggedEvent {
  eventId: string;
  name: string;
  timestampMs: number;
  deviceId: string | null;
  userId: string | null;
  revenue: { amount: number; currency: string | null } | null;
  attribution: { network: string } | null;
  params: Record<string, unknown> | null;
  /** Consent when the event was tracked. */
  consent?: Record<string, unknown>;
  /** Deliveries to ad networks, or why there is none. */
  deliveries?: { network: string; status: string; reason: string | null }[];
}

export interface App {
  id: string;
  key: string;
}

export class Server {
  private constructor(
    private readonly process: ChildProcess,
    private readonly folder: string,
    readonly url: string,
    private readonly key: string,
  ) {}

  /** Starts a server, with more settings if given. */
  static async start(more: Record<string, string> = {}): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "tributary-sdk-"));
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    // The caller's settings must not affect the server under test.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TRIBUTARY_"));
    const env = {
      ...Object.fromEntries(inherited),
      TRIBUTARY_LISTEN: `127.0.0.1:${port}`,
      TRIBUTARY_DATA_DIR: join(folder, "data"),
      TRIBUTARY_RATES__URL: "",
      TRIBUTARY_RATES__SECOND_URL: "",
      ...more,
    };
    const log = openSync(join(folder, "log"), "w");
    const child = spawn(binary(), ["serve"], { env, stdio: ["ignore", log, log] });
    // Kill the server if the test is aborted.
    process.once("exit", () => child.kill("SIGKILL"));
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
    for (let attempt = 0; ; attempt++) {
      const isReady = await fetch(`${url}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
      if (isReady) break;
      if (attempt > 300 || child.exitCode !== null) {
        child.kill("SIGKILL");
        throw new Error(`the server did not start: ${readFileSync(join(folder, "log"), "utf8").slice(-2000)}`);
      }
      await new Promise((done) => setTimeout(done, 100));
    }
    const key = execFileSync(binary(), ["admin", "key", "create", "--permission", "full"], { env });
    return new Server(child, folder, url, key.toString().trim());
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGKILL");
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Calls the REST API. */
  async rest<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.key}`, "Content-Type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Creates an app, so that tests do not see each other's events. */
  async app(settings: object = {}): Promise<App> {
    const { data } = await this.rest<{ data: { id: string } }>("POST", "/apps", { name: "SDK", ...settings });
    const { data: made } = await this.rest<{ data: { sdk: { liveKey: string } } }>("GET", `/apps/${data.id}`);
    return { id: data.id, key: made.sdk.liveKey };
  }

  /** Returns an app's events in order, without the install that the server records. */
  async events(app: App): Promise<LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    for (let cursor: string | null = null; ; ) {
      const page: { data: LoggedEvent[]; meta: { cursor: string | null } } = await this.rest(
        "GET",
        `/apps/${app.id}/events?limit=500${cursor ? `&cursor=${cursor}` : ""}`,
      );
      events.push(...page.data);
      cursor = page.meta.cursor;
      if (!cursor) return events.reverse().filter(({ name }) => name !== "install");
    }
  }
}

/** Waits until a condition holds. */
export async function until(is: () => boolean | Promise<boolean>, what: string, ms = 15_000): Promise<void> {
  for (const end = Date.now() + ms; !(await is()); ) {
    if (Date.now() > end) throw new Error(`timed out waiting for ${what}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}
