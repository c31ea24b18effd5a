// Starts a server, a simulator and the locally installed browser.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const target = resolve("../..", process.env.CARGO_TARGET_DIR ?? "target");
const binary = process.env.TRIBUTARY_BIN ?? join(target, "debug/tributary");
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

export const screenshots = process.env.SCREENSHOTS_DIR ?? join(target, "dashboard-screenshots");
export const PASSWORD = "a lazy fox in the coal mine";

function freePort() {
  return new Promise((resolvePort, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolvePort(port));
    });
  });
}

async function until(what, attempt, patience = 30_000) {
  for (let tries = 0; tries < patience / 100; tries++) {
    const found = await attempt();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`timed out waiting for ${what}`);
}

/** A server and a simulator in a temporary folder. */
export class Service {
  static async start({ host = "127.0.0.1", env = {} } = {}) {
    if (!existsSync(binary)) throw new Error(`no binary at ${binary}; run cargo build`);
    const service = new Service();
    service.folder = mkdtempSync(join(tmpdir(), "tributary-browser-"));
    const [port, simulatorPort] = [await freePort(), await freePort()];
    service.url = `http://${host}:${port}`;
    service.simulator = `http://127.0.0.1:${simulatorPort}`;
    // The caller's settings must not reach the server under test.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TRIBUTARY_"));
    service.env = {
      ...Object.fromEntries(inherited),
      TRIBUTARY_LISTEN: `127.0.0.1:${port}`,
      TRIBUTARY_BASE_URL: service.url,
      TRIBUTARY_DATA_DIR: join(service.folder, "data"),
      TRIBUTARY_RATES__URL: "",
      TRIBUTARY_RATES__SECOND_URL: "",
      TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES: "true",
      TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL: `${service.simulator}/token`,
      TRIBUTARY_NETWORKS__NETWORK_B__REPORTS_URL: service.simulator,
      ...Object.fromEntries(["A", "B", "C", "D"].map((name) => [`TRIBUTARY_NETWORKS__NETWORK_${name}__BASE_URL`, service.simulator])),
      ...env,
    };
    service.children = [
      service.run("simulator", ["simulator", "--listen", `127.0.0.1:${simulatorPort}`]),
      service.run("server", ["serve"]),
    ];
    process.once("exit", () => service.stop());
    await until("the server", () => fetch(`${service.url}/readyz`).then((response) => response.ok, () => false));
    return service;
  }

  run(name, command) {
    const log = openSync(join(this.folder, `${name}.log`), "w");
    return spawn(binary, command, { env: this.env, stdio: ["ignore", log, log] });
  }

  /** Returns the one-time setup link that the server prints until an account exists. */
  setupLink() {
    return until("the setup link", () => readFileSync(join(this.folder, "server.log"), "utf8").match(/\/setup\/\w+/)?.[0]);
  }

  /** Runs a command and returns its output. */
  command(...words) {
    return execFileSync(binary, words, { env: this.env, encoding: "utf8" }).trim();
  }

  stop() {
    for (const child of this.children ?? []) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

// A demo of an unoptimised binary on a busy machine takes minutes to write its history.
const DEMO_READY_MS = 480_000;

/** The demo with its generated history. */
export class Demo {
  static async start() {
    const demo = new Demo();
    demo.folder = mkdtempSync(join(tmpdir(), "tributary-browser-"));
    const log = join(demo.folder, "demo.log");
    const output = openSync(log, "w");
    demo.child = spawn(binary, ["demo", "--listen", "127.0.0.1:0"], { env: { ...process.env, TMPDIR: demo.folder }, stdio: ["ignore", output, output] });
    process.once("exit", () => demo.stop());
    const printed = (pattern) => readFileSync(log, "utf8").match(pattern)?.[1];
    demo.key = await until("the demo", () => printed(/API key +(\S+)/), DEMO_READY_MS);
    demo.password = printed(/Password +(\S+)/);
    demo.url = printed(/Dashboard +(\S+)\//);
    return demo;
  }

  /** Calls the REST API about apps. */
  async api(path, body) {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const response = await fetch(`${this.url}/api/v1/apps${path}`, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
    return response.json();
  }

  stop() {
    this.child?.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Launches the locally installed Chromium. */
export function openBrowser() {
  const paths = [process.env.CHROMIUM_BIN, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const executablePath = paths.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("Chromium not found; install it or set CHROMIUM_BIN");
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Takes screenshots in two widths and both colour schemes and runs axe. Returns the problems found. */
export async function inspectPage(page, name) {
  mkdirSync(screenshots, { recursive: true });
  const problems = [];
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (overflow > 0) problems.push(`${name} at ${width}: ${overflow} px wider than the screen`);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: join(screenshots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      // Contrast depends on the colour scheme, everything else on the width.
      problems.push(...(await accessibilityViolations(page, `${name} at ${width}, ${colorScheme}`)));
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  return problems;
}

async function accessibilityViolations(page, name) {
  // The Content-Security-Policy forbids inline scripts but does not apply to evaluate().
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map((one) => `${one.id}: ${one.help} ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
  return found.map((violation) => `${name}: ${violation}`);
}
