#!/usr/bin/env bash
# Checks the software bill of materials: scripts/sbom.sh [FILE...]
#
# Generates it with scripts/sbom.py, unless files are given, validates it against the official schema of CycloneDX with the library from PyPI,
# and checks what the schema cannot express: every crate from crates.io has a hash, every reference leads to a component,
# and the same sources give the same document. Only the Python environment under target/ is left behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All versions are pinned, so that changes in the library do not break the build unexpectedly.
requirements='arrow==1.4.0
attrs==26.1.0
boolean.py==5.0
cyclonedx-python-lib==11.12.0
defusedxml==0.7.1
fqdn==1.6.0
idna==3.20
isoduration==20.11.0
jsonpointer==3.12
jsonschema==4.26.0
jsonschema-specifications==2025.9.1
lark==1.3.1
license-expression==30.4.4
packageurl-python==0.17.6
py-serializable==2.1.0
python-dateutil==4.0.0
referencing==0.37.0
rfc3339-validator==0.1.4
rfc3986-validator==0.1.1
rfc3987-syntax==1.1.0
rpds-py==2026.9.1
six==1.17.0
sortedcontainers==2.4.0
typing_extensions==4.16.0
tzdata==2026.6
uri-template==1.3.0
webcolors==25.10.0'

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/sbom-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=scripts/python.sh
source scripts/python.sh

validate() { # file
    "$venv/bin/python" - "$1" <<'PYTHON'
import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing
from packageurl import PackageURL

text = open(sys.argv[1], encoding="utf-8").read()
problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert problem is None, problem
bom = json.loads(text)
components = [bom["metadata"]["component"], *bom["components"]]
licensing = get_spdx_licensing()
for component in components:
    name = component["bom-ref"]
    purl = PackageURL.from_string(component["purl"])
    assert (purl.name, purl.version) == (component["bom-ref"].split("/")[-1].split("@")[0], component["version"]), name
    for licence in component["licenses"]:
        problems = licensing.validate(licence["expression"]).errors
        assert not problems, f"{name}: {problems}"
    is_ours = component["name"].startswith("tributary")
    is_hashed = len(component.get("hashes", [{"content": ""}])[0]["content"]) == 64
    assert purl.type != "cargo" or is_hashed != is_ours, f"{name} has no hash"
references = {component["bom-ref"] for component in components}
assert len(references) == len(components), "two components have the same reference"
assert {one["ref"] for one in bom["dependencies"]} == references
assert all(set(one["dependsOn"]) <= references for one in bom["dependencies"])
reached, waiting = set(), [bom["metadata"]["component"]["bom-ref"]]
graph = {one["ref"]: one["dependsOn"] for one in bom["dependencies"]}
while waiting:
    reference = waiting.pop()
    if reference not in reached:
        reached.add(reference)
        waiting += graph[reference]
assert reached == references, f"the binary does not depend on {references - reached}"
# Of tests and builds; a sign that the list is too long.
foreign = {"proptest", "insta", "rstest", "syn", "serde_derive", "cc", "tributary-testkit"}
assert not foreign & {component["name"] for component in components}
# Crates of which the binary contains two versions, and what needs the older one. Each new pair needs a reason here, or
# another version of a dependency.
duplicates = {
    "base64": "tokio-postgres, axum's companions and this workspace use 0.22, hyper-util, lettre and reqwest 0.23",
    "const-oid": "tokio-postgres-rustls",
    "der": "tokio-postgres-rustls",
    "fallible-iterator": "tokio-postgres",
    "getrandom": "ring uses 0.2, metrics-util 0.3",
    "hashbrown": "metrics-util",
    "rand": "metrics-util",
    "rand_chacha": "metrics-util",
    "rand_core": "metrics-util",
    "spki": "tokio-postgres-rustls",
    "x509-cert": "tokio-postgres-rustls",
}
versions = {}
for component in components:
    name = component["purl"].split("@")[0].removeprefix("pkg:cargo/")
    versions.setdefault(name, set()).add(component["version"])
found = {name for name, listed in versions.items() if len(listed) > 1}
assert found == duplicates.keys(), f"duplicates without a reason: {found - duplicates.keys()}; listed, but gone: {duplicates.keys() - found}"
print(f"{len(components)} components, all valid")
PYTHON
}

prepare_venv "cyclonedx-python-lib" "$venv/bin/python" -c 'import cyclonedx.validation.json'
if (($# == 0)); then
    scripts/sbom.py >"$work/sbom.json"
    scripts/sbom.py | cmp "$work/sbom.json"
    set -- "$work/sbom.json"
fi
for file in "$@"; do validate "$file"; done
