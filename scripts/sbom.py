#!/usr/bin/env python3
"""Prints the software bill of materials of the server binary: CycloneDX 1.6, JSON.

usage: scripts/sbom.py [--target TRIPLE]

It lists exactly what is linked into the binary for the target (default: x86_64-unknown-linux-musl): the crates of
`cargo tree` without build scripts, procedural macros and dependencies of tests, and the C and JavaScript code that some
of them contain. Hashes are those of Cargo.lock. The same sources give the same document; SOURCE_DATE_EPOCH adds a time.
Needs Python 3.11 and cargo, and no package."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "tributary-server"
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"

# Code in other languages that a crate compiles or includes: the crate, the name, the licence, and the file and the
# pattern from which the version is read.
BUNDLED = [
    {
        "crate": "libsqlite3-sys",
        "name": "sqlite",
        "licence": "blessing",
        "url": "https://www.sqlite.org/",
        "file": "sqlite3/sqlite3.h",
        "pattern": r'#define SQLITE_VERSION\s+"([^"]+)"',
    },
    {
        "crate": "libmimalloc-sys",
        "name": "mimalloc",
        "licence": "MIT",
        "url": "https://github.com/microsoft/mimalloc",
        # Without its feature `v2`, the crate compiles version 3.
        "file": "c_src/mimalloc/v3/include/mimalloc.h",
        "pattern": r"#define MI_MALLOC_VERSION\s+(\d+)",
    },
    {
        "crate": "tributary-dashboard",
        "name": "htmx.org",
        "type": "npm",
        "licence": "0BSD",
        "url": "https://htmx.org/",
        "file": "static/htmx.min.js",
        "pattern": r'version:"([^"]+)"',
    },
]


def cargo(*arguments):
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(target):
    """Returns the ids of the linked packages, and the ids that each depends on.

    `cargo tree` resolves the features for this binary alone, unlike `cargo metadata`. The format has the same parts as
    an id of `cargo metadata`: name, version, and the repository or path of what does not come from crates.io."""
    lines = cargo(
        "tree", "--locked", "--package", PACKAGE, "--target", target, "--edges", "normal,no-proc-macro",
        "--prefix", "depth", "--format", " {p}",
    ).splitlines()
    edges, path = {}, []
    for line in lines:
        depth, name, version = re.match(r"(\d+) (\S+) v(\S+)", line).groups()
        key = (name, version)
        del path[int(depth):]
        edges.setdefault(key, set())
        if path:
            edges[path[-1]].add(key)
        path.append(key)
    return edges


def purl(kind, name, version):
    return f"pkg:{kind}/{name}@{version}"


def licences(expression):
    # Old manifests separate alternatives with a slash.
    return [{"expression": expression.replace("/", " OR ")}]


def crate(package, checksums):
    name, version = package["name"], package["version"]
    reference = purl("cargo", name, version)
    is_published = package["source"] == CRATES_IO
    if not is_published and package["source"] is not None:
        sys.exit(f"sbom.py: {name} comes from {package['source']}, not from crates.io")
    if not package["license"]:
        sys.exit(f"sbom.py: {name} names no licence")
    component = {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": licences(package["license"]),
        "purl": reference,
    }
    if package.get("description"):
        component["description"] = " ".join(package["description"].split())
    if is_published:
        checksum = checksums[(name, version)]
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        component["externalReferences"] = [
            {"type": "distribution", "url": f"https://crates.io/api/v1/crates/{name}/{version}/download"}
        ]
    if package["repository"]:
        repository = {"type": "vcs", "url": package["repository"]}
        component.setdefault("externalReferences", []).append(repository)
    return component


def bundled(entry, package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = sorted(folder.glob(entry["file"]))
    if not files:
        sys.exit(f"sbom.py: {entry['crate']} has no {entry['file']} any more; correct BUNDLED")
    found = re.search(entry["pattern"], files[-1].read_text(errors="replace"))
    if not found:
        sys.exit(f"sbom.py: {files[-1]} names no version; correct BUNDLED")
    version = found[1]
    if entry["name"] == "mimalloc":
        # 30302 is 3.3.2.
        version = ".".join(str(int(digits)) for digits in re.match(r"(\d+)(\d\d)(\d\d)$", version).groups())
    reference = purl(entry.get("type", "generic"), entry["name"], version)
    return {
        "type": "library",
        "bom-ref": reference,
        "name": entry["name"],
        "version": version,
        "scope": "required",
        "licenses": licences(entry["licence"]),
        "purl": reference,
        "externalReferences": [{"type": "website", "url": entry["url"]}],
    }


def document(target):
    edges = linked(target)
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}

    root = next(key for key in edges if key[0] == PACKAGE)
    components = {key: crate(packages[key], checksums) for key in edges}
    references = {key: component["bom-ref"] for key, component in components.items()}
    graph = {references[key]: {references[other] for other in others} for key, others in edges.items()}
    extra = []
    for entry in BUNDLED:
        owner = next((key for key in edges if key[0] == entry["crate"]), None)
        if owner is None:
            sys.exit(f"sbom.py: {entry['crate']} is not linked any more; correct BUNDLED")
        component = bundled(entry, packages[owner])
        extra.append(component)
        graph[references[owner]].add(component["bom-ref"])
        graph[component["bom-ref"]] = set()

    main = components.pop(root)
    main["type"] = "application"
    main["name"] = "tributary"
    listed = sorted([*components.values(), *extra], key=lambda component: component["bom-ref"])
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": main,
            "properties": [{"name": "cargo:target", "value": target}],
        },
        "components": listed,
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(others)} for reference, others in sorted(graph.items())
        ],
    }
    digest = hashlib.sha256(json.dumps(bom, sort_keys=True).encode()).digest()
    bom["serialNumber"] = f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}"
    if "SOURCE_DATE_EPOCH" in os.environ:
        at = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
        bom["metadata"]["timestamp"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return bom


def main():
    parser = argparse.ArgumentParser(description="Prints the bill of materials of the server binary.")
    parser.add_argument("--target", default="x86_64-unknown-linux-musl", metavar="TRIPLE")
    json.dump(document(parser.parse_args().target), sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
