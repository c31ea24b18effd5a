#!/usr/bin/env bash
# Tests the alert rules in packaging/alerts.yml with promtool, and checks the queries of packaging/grafana.json with it. If
# promtool is not installed, the script extracts it from Debian's package. It does not install the package, because that would start a Prometheus server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

promtool=$(command -v promtool || true)
if [[ -z $promtool ]]; then
    folder=${CARGO_TARGET_DIR:-target}/promtool
    if [[ ! -x $folder/usr/bin/promtool ]]; then
        as_root() { if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi; }
        (cd "$work" && apt-get download prometheus >/dev/null 2>&1) ||
            { as_root apt-get update >/dev/null && (cd "$work" && apt-get download prometheus >/dev/null); }
        rm -rf "$folder"
        mkdir -p "$folder"
        dpkg -x "$work"/prometheus_*.deb "$folder"
    fi
    promtool=$folder/usr/bin/promtool
fi
"$promtool" check rules packaging/alerts.yml
"$promtool" test rules scripts/alerts.test.yml

# Grafana's queries as recording rules, with its variables replaced.
python3 - packaging/grafana.json >"$work/grafana.yml" <<'PYTHON'
import json, sys
queries = [target["expr"] for panel in json.load(open(sys.argv[1]))["panels"] for target in panel.get("targets", [])]
queries = [query.replace("$node", ".*").replace("$__rate_interval", "5m") for query in queries]
rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
print(json.dumps({"groups": [{"name": "grafana", "rules": rules}]}))
PYTHON
"$promtool" check rules "$work/grafana.yml"
