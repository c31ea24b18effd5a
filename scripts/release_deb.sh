#!/usr/bin/env bash
# Installs /tmp/first.deb, upgrades to /tmp/later.deb, removes and purges it. scripts/release_check.sh runs this script
# in a copy of the machine's root. systemd does not run there, so the server is started as its unit would.
set -euo pipefail

server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true' EXIT

die() {
    echo "the Debian package: $*" >&2
    if [[ -s /tmp/server.log ]]; then cat /tmp/server.log >&2; fi
    exit 1
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet --yes --no-install-recommends "$@" >/tmp/apt.log 2>&1 ||
        { cat /tmp/apt.log; die "apt-get $1 failed"; }
}

# Prints a value of the unit.
unit() { # name
    sed -n "s/^$1=//p" /usr/lib/systemd/system/tributary.service
}

settings=/etc/tributary/environment
enabled=/etc/systemd/system/multi-user.target.wants/tributary.service

apt install /tmp/first.deb
[[ $(stat --format %U:%a $settings) == root:600 ]] || die "$settings is readable by others"
getent passwd tributary | grep -q ':/var/lib/tributary:/usr/sbin/nologin$' || die "the user is missing, or may sign in"
[[ -L $enabled ]] || die "the service is not enabled"
[[ -z $(dpkg --verify tributary) ]] || die "$(dpkg --verify tributary)"

# StateDirectory= makes the folder.
install -d -m 700 -o tributary -g tributary /var/lib/tributary
read -ra start < <(unit ExecStart)
[[ ${start[0]} == /usr/bin/tributary ]] || die "the unit starts ${start[0]}"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
as_service=(setpriv --reuid tributary --regid tributary --clear-groups --no-new-privs --bounding-set=-all
    env -i "$(unit Environment)" TRIBUTARY_LISTEN="127.0.0.1:$port" TRIBUTARY_RATES__URL= TRIBUTARY_RATES__SECOND_URL=)
"${as_service[@]}" "${start[@]}" >/tmp/server.log 2>&1 &
server=$!
for ((tries = 0; tries < 100; tries++)); do
    if curl --silent --fail --noproxy '*' "http://127.0.0.1:$port/readyz" >/dev/null; then break; fi
    kill -0 "$server" 2>/dev/null || die "the server exited"
    sleep 0.2
done
((tries < 100)) || die "the server did not become ready"
"${as_service[@]}" tributary admin key create --permission full >/dev/null || die "no key could be created"

echo 'TRIBUTARY_LOG__LEVEL=warn' >>$settings
apt install /tmp/later.deb
tail -n 1 $settings | grep -q '^TRIBUTARY_LOG__LEVEL=warn$' || die "the upgrade changed the settings"
[[ -L $enabled ]] || die "the upgrade disabled the service"
kill -TERM "$server"
wait "$server" || die "the server stopped with $?"
server=''

apt remove tributary
[[ ! -e /usr/bin/tributary ]] || die "the binary was not removed"
[[ -s $settings && -s /var/lib/tributary/tributary.db ]] || die "removing deleted settings or data"
apt purge tributary
[[ ! -e $settings && ! -L $enabled ]] || die "purging left settings or the service behind"
[[ -s /var/lib/tributary/tributary.db ]] || die "purging deleted the database"
echo "the Debian package installs, starts, upgrades and is removed"
