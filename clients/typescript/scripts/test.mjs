// Runs the tests against the built package and the server at TRIBUTARY_SERVER. The example of the README is one of them.

import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

process.chdir(new URL("..", import.meta.url).pathname);

const example = /^```ts\n(.*?)^```$/ms.exec(readFileSync("README.md", "utf8"));
if (example === null) throw new Error("README.md has no example");
writeFileSync("test/readme.test.ts", example[1]);

// Also checks the types of the calls.
execFileSync("node_modules/.bin/tsc", ["--project", "tsconfig.test.json"], { stdio: "inherit" });
const files = readdirSync("dist/test").filter((file) => file.endsWith(".test.js"));
const options = ["--test", "--test-reporter=spec", "--test-timeout=60000"];
const paths = files.map((file) => `dist/test/${file}`);
const { status } = spawnSync(process.execPath, [...options, ...paths], { stdio: "inherit" });
process.exit(status ?? 1);
