// Checks the package as npm would publish it: links, contents, types, and that both module kinds load.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

process.chdir(new URL("..", import.meta.url).pathname);

const read = (path) => readFileSync(path, "utf8");
const run = (command, args, options = {}) => execFileSync(command, args, { encoding: "utf8", ...options });
const bin = (name) => join(process.cwd(), "node_modules/.bin", name);
const manifest = JSON.parse(read("package.json"));
const workspace = read("../../Cargo.toml");
const repository = /^repository = "(.*)"$/m.exec(workspace)?.[1];

assert.equal(manifest.dependencies, undefined, "the package must not have runtime dependencies");
assert.equal(manifest.repository.url, `git+${repository}.git`, "Cargo.toml names another repository");
assert.equal(read("LICENSE"), read("../../LICENSE"), "LICENSE differs from the repository's");
for (const [, target] of read("README.md").matchAll(/\]\(([^)]+)\)/g)) {
  assert.match(target, /^(https:|#)/, `README.md: ${target} does not work on npm's site`);
}

const before = readdirSync(".").sort();
const work = mkdtempSync(join(tmpdir(), "tributary-package-"));
try {
  const options = ["--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", work];
  const [packed] = JSON.parse(run("npm", ["pack", ...options]));
  const tarball = join(work, packed.filename);
  const files = packed.files.map(({ path }) => path);
  const targets = JSON.stringify(manifest.exports).match(/\.\/dist\/[^"]+/g);
  for (const file of [...targets.map((target) => target.slice(2)), "LICENSE", "README.md"]) {
    assert.ok(files.includes(file), `${file} is not in the package`);
  }
  const expected = /^(dist\/[\w.-]+|LICENSE|README\.md|(global\/)?package\.json)$/;
  const unexpected = files.filter((file) => !expected.test(file));
  assert.deepEqual(unexpected, [], "the package has files that nobody needs");

  console.log(run(bin("publint"), ["run", tarball, "--strict"]).trim());
  run(bin("attw"), [tarball, "--format", "ascii"], { stdio: ["ignore", "pipe", "inherit"] });
  console.log("types of both module kinds: ok");

  const app = join(work, "app");
  mkdirSync(join(app, "node_modules"), { recursive: true });
  run("tar", ["-xzf", tarball, "-C", app]);
  symlinkSync("../package", join(app, "node_modules/tributary-sdk"));
  const use = 'void configure({ key: "pk", baseUrl: "https://x", consent: { adUserData: false } });';
  const usesPackage = `import { configure } from "tributary-sdk";\n${use}\n`;
  const usesGlobal = 'import "tributary-sdk/global";\nvoid Tributary.flush();\n';
  writeFileSync(join(app, "a.mts"), usesPackage + usesGlobal);
  writeFileSync(join(app, "b.cts"), usesPackage + usesGlobal);
  for (const file of ["a.mts", "b.cts"]) {
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--lib", "es2020,dom", file];
    run(bin("tsc"), options, { cwd: app, stdio: "inherit" });
  }
  const check = 'if (typeof optOut + typeof Tributary.configure !== "functionfunction") process.exit(1);';
  const asModule = `import { optOut } from "tributary-sdk"; import "tributary-sdk/global"; ${check}`;
  run(process.execPath, ["--input-type=module", "-e", asModule], { cwd: app, stdio: "inherit" });
  const asCommon = `const { optOut } = require("tributary-sdk"); require("tributary-sdk/global"); ${check}`;
  run(process.execPath, ["-e", asCommon], { cwd: app, stdio: "inherit" });
} finally {
  rmSync(work, { recursive: true, force: true });
}
assert.deepEqual(readdirSync(".").sort(), before, "npm pack left a file behind");
console.log(`package ${manifest.version}: ok`);
