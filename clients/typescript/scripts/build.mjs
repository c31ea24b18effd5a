// Builds dist/: generates the types from the OpenAPI description of this repository, and compiles.

import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });

const run = (tool, ...options) => execFileSync(`node_modules/.bin/${tool}`, options, { stdio: "inherit" });
run("openapi-typescript", "../../openapi.yaml", "--output", "src/openapi.ts");
run("tsc", "--project", "tsconfig.json");
