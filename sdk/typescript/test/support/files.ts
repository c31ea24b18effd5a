import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Storage } from "../../src/types";

/** A persistent storage with one file per record. */
export function fileStorage(folder: string): Storage {
  mkdirSync(folder, { recursive: true });
  const path = (key: string): string => join(folder, encodeURIComponent(key));
  return {
    get(key) {
      try {
        return readFileSync(path(key), "utf8");
      } catch {
        return null;
      }
    },
    set(key, value) {
      // Write and rename, so that a killed process leaves no partial record.
      writeFileSync(`${path(key)}~`, value);
      renameSync(`${path(key)}~`, path(key));
    },
    remove: (key) => rmSync(path(key), { force: true }),
    keys: () =>
      readdirSync(folder)
        .filter((name) => !name.endsWith("~"))
        .map(decodeURIComponent),
  };
}
