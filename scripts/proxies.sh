#!/usr/bin/env bash
# Tests the proxy configurations in packaging/proxy: nginx, Caddy and HAProxy with TLS in front of a server.
#
# TRIBUTARY_BIN overrides target/debug/tributary. Missing proxies are installed with apt-get, without starting their
# services.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# nginx and HAProxy are in a folder that only root has in PATH.
PATH=$PATH:/usr/sbin
binary=$(realpath -m "${TRIBUTARY_BIN:-${CARGO_TARGET_DIR:-target}/debug/tributary}")
# The server rejects variables that are no settings.
unset TRIBUTARY_BIN
work=$(mktemp -d)
# The public host name in the configurations, and the address of a client that is not the proxy's.
name=links.example.com client=127.0.0.2
started=() passed=0

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Runs a command as root, with sudo if necessary.
as_root() {
    if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

cleanup() {
    local status=$? process
    trap - EXIT
    trap '' INT TERM HUP PIPE
    for process in "${started[@]}"; do
        kill -TERM -- "-$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    if ((status != 0)); then tail -n 20 "$work"/*.log >&2 || true; fi
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# Installs packages whose services must not start: they would listen on this machine's ports.
install_stopped() { # packages...
    local policy=/usr/sbin/policy-rc.d
    [[ ! -e $policy ]] || policy=''
    if [[ -n $policy ]]; then printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod 755 "$policy"; fi
    local status=0
    { as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@"; } >"$work/install.log" 2>&1 || status=$?
    if [[ -n $policy ]]; then as_root rm "$policy"; fi
    return "$status"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Starts a program in a process group, so that it can be stopped as a whole.
start() { # name of the log, command...
    local log=$work/$1.log
    shift
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    started+=($!)
    set +m
}

# Stops the program that was started last.
stop_last() {
    local last=$((${#started[@]} - 1))
    kill -TERM -- "-${started[last]}"
    wait "${started[last]}" || true
    unset "started[$last]"
}

# Requests a URL of the public host through the proxy, as a client with another address.
request() { # client's address, path, options of curl...
    local address=$1 path=$2
    shift 2
    curl --silent --show-error --noproxy '*' --max-time 30 --cacert "$work/ca.pem" --interface "$address" \
        --resolve "$name:$https:127.0.0.1" "$@" "https://$name:$https$path"
}

status_of() { # client's address, path, options of curl...
    request "$@" --output /dev/null --write-out '%{http_code}'
}

expect() { # what, expected, found
    [[ $3 == "$2" ]] || die "$proxy: $1: expected $2, found $3"
    passed=$((passed + 1))
}

wait_for() { # what, command...
    local what=$1 tries
    shift
    for ((tries = 0; tries < 150; tries++)); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    die "$what did not start"
}

# Creates a certificate for the public host name, signed by itself.
create_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$name" \
        -addext "subjectAltName=DNS:$name" -keyout "$work/key.pem" -out "$work/ca.pem" 2>"$work/openssl.log"
    cat "$work/ca.pem" "$work/key.pem" >"$work/both.pem"
}

# Starts the server, with a link and two keys: one for the client's address, one for any.
start_server() {
    upstream=$(free_port)
    export TRIBUTARY_LISTEN=127.0.0.1:$upstream TRIBUTARY_DATA_DIR=$work/data TRIBUTARY_BASE_URL=https://$name
    export TRIBUTARY_TRUSTED_PROXIES=127.0.0.1 TRIBUTARY_RATES__URL='' TRIBUTARY_RATES__SECOND_URL=''
    start server "$binary" serve
    wait_for "the server" curl --silent --fail --noproxy '*' "http://127.0.0.1:$upstream/readyz"
    limited=$("$binary" admin key create --permission full --address "$client" 2>"$work/admin.log")
    local key api="http://127.0.0.1:$upstream/api/v1/apps" json='Content-Type: application/json' app
    key=$("$binary" admin key create --permission full 2>"$work/admin.log")
    app=$(curl --silent --noproxy '*' "$api" -H "Authorization: Bearer $key" -H "$json" -d '{"name": "Shop"}' |
        grep -o 'app_[0-9a-z]*' | head -n 1)
    curl --silent --fail --noproxy '*' "$api/$app/links" -H "Authorization: Bearer $key" -H "$json" --output /dev/null \
        -d '{"name": "Spring", "slug": "spring", "type": "web_funnel", "destinationUrl": "https://shop.example.com/"}'
    head -c 1300000 /dev/zero | tr '\0' ' ' >"$work/large"
}

# Writes a proxy's configuration with the ports and files of this test.
configure() { # file, expressions of sed...
    local file=$1
    shift
    sed -E "s/127\.0\.0\.1:8080/127.0.0.1:$upstream/" "packaging/proxy/$file" | sed -E "$@" >"$work/$file"
}

start_nginx() {
    configure nginx.conf -e '/listen \[::\]/d' -e "s/listen 80;/listen 127.0.0.1:$http;/" \
        -e "s/listen 443/listen 127.0.0.1:$https/" -e "s#/etc/ssl/[^;]*fullchain.pem#$work/ca.pem#" \
        -e "s#/etc/ssl/[^;]*privkey.pem#$work/key.pem#"
    mkdir -p "$work/nginx"
    cat >"$work/nginx-main.conf" <<TEXT
daemon off; pid $work/nginx/pid; error_log stderr;
events {}
http {
    client_body_temp_path $work/nginx/body; proxy_temp_path $work/nginx/proxy; fastcgi_temp_path $work/nginx/fastcgi;
    uwsgi_temp_path $work/nginx/uwsgi; scgi_temp_path $work/nginx/scgi;
    include $work/nginx.conf;
}
TEXT
    chmod 755 "$work"
    if ((EUID == 0)); then sed -i '1s/^/user root; /' "$work/nginx-main.conf"; fi
    start nginx nginx -p "$work/nginx" -c "$work/nginx-main.conf"
}

start_caddy() {
    configure Caddyfile -e "s#^$name \{#&\n\ttls $work/ca.pem $work/key.pem#"
    printf '{\n\tadmin off\n\thttp_port %s\n\thttps_port %s\n}\n' "$http" "$https" |
        cat - "$work/Caddyfile" >"$work/Caddyfile.test"
    XDG_DATA_HOME=$work/caddy XDG_CONFIG_HOME=$work/caddy \
        start caddy caddy run --adapter caddyfile --config "$work/Caddyfile.test"
}

start_haproxy() {
    configure haproxy.cfg -e "s/bind :80$/bind 127.0.0.1:$http/" -e "s/bind :443/bind 127.0.0.1:$https/" \
        -e "s#crt [^ ]*#crt $work/both.pem#"
    haproxy -c -f "$work/haproxy.cfg" >"$work/haproxy-check.log" 2>&1 || die "haproxy rejects its configuration"
    start haproxy haproxy -db -f "$work/haproxy.cfg"
}

check_proxy() { # proxy
    proxy=$1 http=$(free_port) https=$(free_port)
    "start_$proxy"
    wait_for "$proxy" request "$client" /readyz --fail
    local bearer="Authorization: Bearer $limited" found
    expect "a request" 200 "$(status_of "$client" /healthz)"
    expect "HTTP/2" 2 "$(request "$client" /healthz --http2 --output /dev/null --write-out '%{http_version}')"
    found=$(request "$client" '/w/spring?fbclid=abc' --head)
    expect "a tap gets a click id" 1 "$(grep -ci '^location: https://shop.example.com/.*ar_click_id=clk_' <<<"$found")"
    expect "HSTS" 1 "$(grep -ci '^strict-transport-security:' <<<"$found")"
    # The key is limited to the client's address, so the answer shows which address the server sees.
    expect "the client's address" 200 "$(status_of "$client" /api/v1/apps --header "$bearer")"
    expect "another address" 403 "$(status_of 127.0.0.3 /api/v1/apps --header "$bearer")"
    expect "a forged address" 403 \
        "$(status_of 127.0.0.3 /api/v1/apps --header "$bearer" --header "X-Forwarded-For: $client")"
    found=$(request "$client" /api/v1/apps --header "$bearer" --header 'Content-Type: application/json' \
        --header 'Expect:' --data-binary "@$work/large")
    expect "the server's error for a large body" 1 "$(grep -c '"code":"payload_too_large"' <<<"$found")"
    expect "metrics are not public" 404 "$(status_of "$client" /metrics)"
    found=$(curl --silent --noproxy '*' --resolve "$name:$http:127.0.0.1" --output /dev/null \
        --write-out '%{http_code} %{redirect_url}' "http://$name:$http/w/spring?fbclid=abc")
    # Some redirects name a port of this test.
    found=$(sed -E "s#($name):[0-9]+#\1#" <<<"$found")
    expect "http leads to https" "308 https://$name/w/spring?fbclid=abc" "$found"
    stop_last
    echo "$proxy: ok"
}

[[ -x $binary ]] || die "no binary at $binary; run cargo build"
missing=()
for proxy in nginx caddy haproxy; do command -v "$proxy" >/dev/null || missing+=("${proxy/#nginx/nginx-light}"); done
command -v openssl >/dev/null || missing+=(openssl)
if ((${#missing[@]} > 0)); then
    echo "installing: ${missing[*]}"
    install_stopped "${missing[@]}"
fi
create_certificate
start_server
for proxy in nginx caddy haproxy; do check_proxy "$proxy"; done
# ./test counts results in cargo's format.
echo "test result: ok. $passed passed; 0 failed;"
