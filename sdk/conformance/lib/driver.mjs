// A driver process: one JSON command per line on stdin, one JSON answer per line on stdout.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { KEY } from "./server.mjs";

/** Real time in which a driver must answer. */
const ANSWER_MS = 30_000;

export class Driver {
  #child;
  #answers = [];
  #waiter;
  #ended;
  #baseUrl;

  constructor(command, storage, baseUrl) {
    this.#baseUrl = baseUrl;
    const env = { ...process.env, TRIBUTARY_STORAGE: storage };
    // Its own process group, so that a kill also ends what a wrapper script has started.
    this.#child = spawn(command[0], command.slice(1), { env, stdio: ["pipe", "pipe", "inherit"], detached: true });
    this.#ended = new Promise((done) => {
      this.#child.once("error", (error) => done(`the driver did not start: ${error.message}`));
      this.#child.once("exit", (code, signal) => done(`the driver ended (${signal ?? `exit code ${code}`})`));
    });
    // Writing to a driver that has ended fails; the missing answer is reported instead.
    this.#child.stdin.on("error", () => undefined);
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      if (this.#waiter) this.#waiter(line);
      else this.#answers.push(line);
    });
  }

  /** Sends a command and returns the answer. Fails if the driver reports an error. */
  async do(command, fields = {}) {
    return this.raw(JSON.stringify({ do: command, ...fields }));
  }

  /** Sends a command as JSON text. */
  async raw(line) {
    this.send(line);
    const text = this.#answers.shift() ?? (await this.#nextLine(line));
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      throw new Error(`the driver wrote a line that is not JSON: ${text.slice(0, 200)}`);
    }
    if (answer.ok !== true) throw new Error(`the driver failed on ${line.slice(0, 200)}: ${answer.error}`);
    return answer;
  }

  /** Sends a command without waiting for the answer, before a kill. */
  send(line) {
    this.#child.stdin.write(`${line}\n`);
  }

  async #nextLine(line) {
    let timer;
    const timeout = new Promise((_, failed) => {
      timer = setTimeout(() => failed(new Error(`no answer to ${line.slice(0, 200)}`)), ANSWER_MS);
    });
    const next = new Promise((done) => (this.#waiter = done));
    const ended = this.#ended.then((why) => {
      throw new Error(`${why} instead of answering ${line.slice(0, 200)}`);
    });
    ended.catch(() => undefined);
    try {
      return await Promise.race([next, ended, timeout]);
    } finally {
      clearTimeout(timer);
      this.#waiter = undefined;
    }
  }

  configure(options = {}) {
    const all = { platform: "android", ...options };
    return this.do("configure", { key: KEY, baseUrl: this.#baseUrl, options: all });
  }

  /** Tracks an event and returns its id. */
  async track(name, params, eventId) {
    const { eventId: id } = await this.do("track", { name, ...(params && { params }), ...(eventId && { eventId }) });
    return id;
  }

  advance(ms) {
    return this.do("advance", { ms });
  }

  flush() {
    return this.do("flush");
  }

  state() {
    return this.do("state");
  }

  /** Ends the process normally. */
  async exit() {
    await this.do("exit").catch(() => undefined);
    await this.kill();
  }

  /** Kills the process and what it has started. */
  async kill() {
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
    await this.#ended;
  }
}
