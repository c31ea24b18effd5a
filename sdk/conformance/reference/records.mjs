// Persistent records: one file each, written so that a killed process leaves no partial record.

import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

export class Records {
  #folder;

  constructor(folder) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** Returns a record, or null. */
  get(name) {
    try {
      return JSON.parse(readFileSync(join(this.#folder, name), "utf8"));
    } catch {
      return null;
    }
  }

  set(name, value) {
    renameSync(this.#write(value), join(this.#folder, name));
  }

  /** Creates a record unless it exists. Of two processes, only one creates it. */
  create(name, value) {
    const temporary = this.#write(value);
    try {
      linkSync(temporary, join(this.#folder, name));
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    } finally {
      rmSync(temporary);
    }
  }

  remove(name) {
    rmSync(join(this.#folder, name), { force: true });
  }

  /** Returns the names with this prefix, in order. */
  list(prefix) {
    return readdirSync(this.#folder)
      .filter((name) => name.startsWith(prefix))
      .sort();
  }

  clear() {
    this.list("").forEach((name) => this.remove(name));
  }

  /** Writes a temporary file, synced to disk. */
  #write(value) {
    const path = join(this.#folder, `~${process.pid}`);
    const file = openSync(path, "w");
    writeSync(file, JSON.stringify(value));
    fsyncSync(file);
    closeSync(file);
    return path;
  }
}
