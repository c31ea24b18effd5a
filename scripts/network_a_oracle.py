"""Compares the adapter for Meta (network_a) with Meta's official client: network_a_oracle.py SERVER SIMULATOR, with a
full key in KEY.

Sends clicks and events to Tributary and reads the resulting payloads from the simulator. The client gets the same data
in clear text (such as the e-mail address instead of its hash) and must produce the same payloads. Finally the client
sends as well, and the simulator must accept it. scripts/network_a_oracle.sh starts the servers.
"""

import difflib
import hashlib
import json
import os
import re
import sys
import time
import uuid
from dataclasses import dataclass
from typing import Any

import requests
from facebook_business.adobjects.serverside.action_source import ActionSource
from facebook_business.adobjects.serverside.app_data import AppData
from facebook_business.adobjects.serverside.custom_data import CustomData
from facebook_business.adobjects.serverside.event import Event
from facebook_business.adobjects.serverside.event_request import EventRequest
from facebook_business.adobjects.serverside.extended_device_info import ExtendedDeviceInfo
from facebook_business.adobjects.serverside.user_data import UserData
from facebook_business.api import FacebookAdsApi
from facebook_business.exceptions import FacebookRequestError
from facebook_business.session import FacebookSession

Json = dict[str, Any]

TOKEN = "EAAB0123456789abcdef"
SECRET = "0123456789abcdef0123456789abcdef"
# The user in clear text, for the client.
EMAIL = " Joe@EXAMPLE.com "
PHONE = "+1 (415) 555-2671"
# The user's hashes, for Tributary: of the lower-case e-mail address and of the phone number's digits.
EMAIL_HASH = hashlib.sha256(b"joe@example.com").hexdigest()
PHONE_HASH = hashlib.sha256(b"14155552671").hexdigest()

SHOP = "https://shop.example.com"
STORE = "https://play.google.com/store/apps/details?id=com.example.runner"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/26.1 Mobile/15E148 Safari/604.1"
)
ANDROID = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/141.0.0.0 Mobile Safari/537.36"
)
ADVERTISING_ID = "38400000-8cf0-41bd-b23e-10b96e40000d"

# Time limits in seconds: for all deliveries, and for one request.
DELIVERY_MAX = 40
REQUEST_MAX = 10
# Meta accepts events from the last seven days.
TOO_OLD_SECONDS = 8 * 24 * 60 * 60
TOO_OLD = (100, 2804003)


class Disagreement(Exception):
    """A comparison failed."""


def ensure(holds: bool, message: str) -> None:
    if not holds:
        raise Disagreement(message)


def found_in(text: str, pattern: str, message: str) -> str:
    """Returns the first group of a pattern in a text."""
    found = re.search(pattern, text)
    if found is None:
        raise Disagreement(f"{message}: {text!r}")
    return found[1]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Host:
    """An HTTP client for a JSON API."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers.update(headers)

    def call(self, method: str, path: str, body: Json | None = None, **headers: str) -> Any:
        answer = self.session.request(method, self.url + path, json=body, headers=headers, timeout=REQUEST_MAX)
        ensure(answer.ok, f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def location(self, path: str, **headers: str) -> str:
        """Returns the redirect target of a path."""
        url = self.url + path
        answer = self.session.get(url, headers=headers, allow_redirects=False, timeout=REQUEST_MAX)
        return answer.headers.get("location", "")


@dataclass(frozen=True)
class Click:
    """A click on a link, with the data that is sent to Meta."""

    id: str
    link: str
    fbclid: str
    fbp: str
    address: str
    agent: str
    earliest_ms: int
    latest_ms: int

    def fbc(self, payload: Json) -> str:
        """Returns the expected fbc value. Its time comes from the server and must be close to the click."""
        fbc = payload["user_data"].get("fbc", "")
        millis = int(found_in(fbc, r"^fb\.1\.(\d{13})\.", "no fbc with a time in milliseconds"))
        ensure(self.earliest_ms <= millis <= self.latest_ms, f"wrong click time: {fbc!r}")
        return f"fb.1.{millis}.{self.fbclid}"


class App:
    """An app connected to its own pixel."""

    def __init__(self, server: Host, simulator: Host, pixel: str, **integration: Any) -> None:
        self.server, self.simulator, self.pixel = server, simulator, pixel
        # Phones and browsers have no API key.
        self.outside = Host(server.url)
        account = {"network": "network_a", "pixelId": pixel, "accessToken": TOKEN, "appSecret": SECRET}
        simulator.call("POST", "/control/accounts", account)
        made = server.call("POST", "/api/v1/apps", {"name": pixel, "webEvents": {"enabled": True}, "attribution": {"fraud": "refuse"}})["data"]
        self.id, self.sdk_key = made["id"], made["sdk"]["liveKey"]
        settings = {"pixelId": pixel, **integration.pop("settings")}
        credentials = {"accessToken": TOKEN, "appSecret": SECRET}
        change = {"enabled": True, "settings": settings, "credentials": credentials, **integration}
        self.call("PATCH", "/integrations/network_a", change)

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        return self.server.call(method, f"/api/v1/apps/{self.id}{path}", body)

    def track(self, endpoint: str, body: Json) -> Any:
        return self.outside.call("POST", f"/api/track/{endpoint}", body, **{"X-Tributary-Key": self.sdk_key})

    def tap(self, link: Json, agent: str, address: str) -> Click:
        """Creates a link and clicks it."""
        made = self.call("POST", "/links", {"name": "Oracle", **link})["data"]["url"]
        earliest = now_ms()
        # Mixed case: click ids must be forwarded unchanged.
        fbclid, fbp = f"IwAR2kZ8q_AbCd-{self.pixel}", f"fb.1.{earliest}.1098115397"
        path = made.removeprefix(self.server.url)
        headers = {"User-Agent": agent, "X-Forwarded-For": address}
        location = self.outside.location(f"{path}?fbclid={fbclid}&fbp={fbp}", **headers)
        click = found_in(location, r"ar_click_id(?:=|%3D)(clk_[0-9a-z]+)", "no click id in the redirect")
        return Click(click, made, fbclid, fbp, address, agent, earliest, now_ms())

    def wait_until_delivered(self, count: int) -> None:
        end = time.monotonic() + DELIVERY_MAX
        while True:
            found = self.call("GET", "/deliveries?limit=500")["data"]
            statuses = [one["status"] for one in found]
            if (len(found) >= count and "pending" not in statuses) or time.monotonic() > end:
                break
            time.sleep(0.2)
        ensure(statuses == ["delivered"] * count, f"expected {count} delivered: {json.dumps(found, indent=2)}")

    def received(self) -> dict[str, Json]:
        """Returns the conversions that the simulator received for this pixel, by event id."""
        path = f"/control/networks/network_a/conversions?account={self.pixel}&limit=1000"
        conversions = self.simulator.call("GET", path)["conversions"]
        return {one["eventId"]: one for one in conversions}

    def logged(self, name: str) -> Json:
        """Returns the only SDK event with this name."""
        found = self.call("GET", f"/events?name={name}&limit=500")["data"]
        found = [one for one in found if one["source"] != "web"]
        ensure(len(found) == 1, f"expected one event {name}: {found}")
        return found[0]

    def derived_id(self, event: Json, network_event: str) -> str:
        """Returns the derived event id that is sent to Meta."""
        number = 0
        for digit in event["id"].removeprefix("evt_"):
            number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(digit)
        return sha256(f"{self.id}|{uuid.UUID(int=number)}|network_a|{network_event}")[:32]


@dataclass(frozen=True)
class Expected:
    """An expected event for the client, and the click that it is credited to."""

    event: Event
    click: Click

    def with_click_time(self, payload: Json) -> Event:
        """Returns the event with the click time from the received payload, which only the server knows."""
        self.event.user_data.fbc = self.click.fbc(payload)
        return self.event


def website(app: App) -> list[Expected]:
    """Sends one visitor's web events."""
    click = app.tap({"type": "web_funnel", "destinationUrl": f"{SHOP}/x"}, IPHONE, "203.0.113.24")
    visitor, at, page = str(uuid.uuid4()), now_ms(), f"{SHOP}/checkout/thanks"
    person = UserData(
        email=EMAIL, external_id=sha256(visitor), client_ip_address=click.address, client_user_agent=click.agent,
        fbp=click.fbp,
    )

    def happens(kind: str, name: str, posted: Json, custom: CustomData | None) -> Expected:
        event_id = f"web-{kind}"
        app.call("POST", "/web-events", {
            "eventId": event_id, "eventType": kind, "arClickId": click.id, "deviceId": visitor, "timestampMs": at,
            "sourceUrl": page, "emailSha256": EMAIL_HASH, **posted,
        })
        event = Event(
            event_name=name, event_time=at // 1000, event_id=event_id, event_source_url=page,
            action_source=ActionSource.WEBSITE, user_data=person, custom_data=custom,
        )
        return Expected(event, click)

    paid = CustomData(value=29.99, currency="USD", order_id="web-purchase")
    predicted = CustomData(value=9.99, currency="USD", predicted_ltv=9.99)
    return [
        happens("purchase", "Purchase", {"revenue": "29.99", "currency": "USD"}, paid),
        happens("sign_up", "CompleteRegistration", {}, None),
        happens("start_trial", "StartTrial", {"revenue": "9.99", "currency": "USD"}, predicted),
    ]


def install(app: App, click: Click, **device: Any) -> str:
    """Registers a device with an install referrer. Returns its id."""
    phone = str(uuid.uuid4())
    # Identify first, so that the install includes the hashes.
    app.track("identify", {"deviceId": phone, "matching": {"email": EMAIL_HASH, "phone": PHONE_HASH}})
    referrer = {"referrer": f"ar_click_id={click.id}"}
    body = {"deviceId": phone, "platform": "android", "osVersion": "14", "installReferrer": referrer, **device}
    credited = app.track("configure", body)["data"]["attribution"]["network"]
    ensure(credited == "network_a", f"install credited to {credited}")
    return phone


def sdk_event(app: App, kind: str, name: str, **fields: Any) -> Event:
    """Returns an SDK event for the client."""
    logged = app.logged(kind)
    return Event(
        event_name=name, event_time=logged["timestampMs"] // 1000, event_id=app.derived_id(logged, name), **fields
    )


def sdk_in_website_mode(app: App) -> list[Expected]:
    """Sends SDK events in website mode, without consent to personalised ads."""
    click = app.tap({"androidUrl": STORE}, ANDROID, "203.0.113.25")
    phone = install(app, click, consent={"adUserData": True, "adPersonalization": False})
    sold = {"eventId": "sdk-purchase", "name": "purchase", "timestampMs": now_ms(), "revenue": 19.9, "currency": "USD"}
    app.track("events", {"deviceId": phone, "events": [sold]})
    person = UserData(
        email=EMAIL, phone=PHONE, external_id=sha256(phone), client_ip_address=click.address,
        client_user_agent=click.agent, fbp=click.fbp,
    )
    fields = {
        "action_source": ActionSource.WEBSITE, "event_source_url": click.link, "opt_out": True, "user_data": person,
    }
    paid = CustomData(value=19.9, currency="USD")
    return [
        Expected(sdk_event(app, "install", "Lead", **fields), click),
        Expected(sdk_event(app, "purchase", "Purchase", custom_data=paid, **fields), click),
    ]


def sdk_in_app_mode(app: App) -> list[Expected]:
    """Sends SDK events in app mode, with limited data use."""
    click = app.tap({"androidUrl": STORE}, ANDROID, "2001:db8::26")
    phone = install(
        app, click, model="Pixel 8", bundleId="com.example.runner", appVersion="3.2.0 (412)", locale="en-US",
        timezone="America/New_York", screen={"width": 360, "height": 800, "scale": 2.5}, gaid=ADVERTISING_ID,
    )
    sought = {"eventId": "sdk-search", "name": "search", "timestampMs": now_ms(), "params": {"query": "red shoes"}}
    app.track("events", {"deviceId": phone, "events": [sought]})
    person = UserData(
        email=EMAIL, phone=PHONE, external_id=sha256(phone), client_ip_address=click.address, madid=ADVERTISING_ID,
        anon_id=phone,
    )
    # Unknown values are empty strings; the client would send null.
    info = ExtendedDeviceInfo(
        ext_info_version="a2", app_package_name="com.example.runner", short_version="3.2.0",
        long_version="3.2.0 (412)", os_version="14", device_model_name="Pixel 8", locale="en_US",
        timezone_abbreviation="", carrier="", screen_width="900", screen_height="2000", screen_density="2.5",
        cpu_core_count="", total_disk_space_gb="", free_disk_space_gb="", device_time_zone="America/New_York",
    )
    fields = {
        "action_source": ActionSource.APP, "user_data": person, "data_processing_options": ["LDU"],
        "data_processing_options_country": 0, "data_processing_options_state": 0,
        "app_data": AppData(advertiser_tracking_enabled=1, application_tracking_enabled=1, extinfo=info),
    }
    search = CustomData(search_string="red shoes")
    return [
        Expected(sdk_event(app, "install", "Lead", **fields), click),
        Expected(sdk_event(app, "search", "Search", custom_data=search, **fields), click),
    ]


def comparable(payload: Json) -> list[str]:
    """Formats a payload as lines. The order of user hashes is ignored; everything else must be identical."""
    person = {name: sorted(one) if isinstance(one, list) else one for name, one in payload["user_data"].items()}
    return json.dumps({**payload, "user_data": person}, indent=2, sort_keys=True).splitlines()


def normalized(event: Event) -> Json:
    """Returns the client's payload for an event, with the currency in capitals, as Tributary sends it."""
    payload = event.normalize()
    if "currency" in payload.get("custom_data", {}):
        payload["custom_data"]["currency"] = payload["custom_data"]["currency"].upper()
    return payload


def compare(app: App, expected: list[Expected]) -> list[Event]:
    """Compares all received payloads with the client's. Returns the client's events."""
    arrived = app.received()
    ids = {one.event.event_id for one in expected}
    ensure(arrived.keys() == ids, f"received {sorted(arrived)} instead of {sorted(ids)}")
    events, differences = [], []
    for one in expected:
        payload = arrived[one.event.event_id]["payload"]
        event = one.with_click_time(payload)
        events.append(event)
        title = f"{event.action_source.value} {event.event_name}"
        sides = (comparable(normalized(event)), comparable(payload))
        lines = list(difflib.unified_diff(*sides, "official client", "tributary", lineterm="", n=99))
        if lines:
            differences.append("\n".join([f"{title} differs:", *lines]))
        else:
            print(f"identical: {title}")
    ensure(not differences, "\n\n".join(differences))
    return events


def send(app: App, events: list[Event]) -> None:
    """Sends with the client. All events must be received."""
    answer = EventRequest(pixel_id=app.pixel, events=events, partner_agent="oracle").execute()
    ensure(answer.events_received == len(events), f"{answer.events_received} of {len(events)} received")


def ensure_counted(app: App, event: Event, times: int) -> None:
    found = app.received().get(event.event_id, {})
    counts = {name: found.get(name) for name in ("counted", "times")}
    ensure(counts == {"counted": 1, "times": times}, f"{event.event_name}, {event.event_id}: {counts}")


def send_again(app: App, event: Event) -> None:
    """Sends an event again with the client: the simulator must recognise the duplicate."""
    ensure_counted(app, event, times=1)
    send(app, [event])
    ensure_counted(app, event, times=2)
    print(f"duplicate recognised: {event.event_name}")


def send_others(app: App, events: list[Event]) -> None:
    """Sends the events again under other ids: the simulator must count them, with the same content."""
    for event in events:
        event.event_id = f"client-{event.event_id}"
    send(app, events)
    arrived = app.received()
    for event in events:
        ensure_counted(app, event, times=1)
        payload = arrived[event.event_id]["payload"]
        ensure(comparable(payload) == comparable(event.normalize()), f"different payload: {json.dumps(payload)}")
    print(f"received from the client: {len(events)}")


def send_too_old(app: App, event: Event) -> None:
    """Sends an event that is too old: the client must receive the error code."""
    event.event_time, event.event_id = int(time.time()) - TOO_OLD_SECONDS, "too-old"
    try:
        send(app, [event])
    except FacebookRequestError as error:
        found = (error.api_error_code(), error.api_error_subcode())
        ensure(found == TOO_OLD, f"wrong error code {found}")
    else:
        raise Disagreement("an event that is too old was accepted")
    ensure("too-old" not in app.received(), "a rejected event was counted")
    print("rejected: too old")


def ensure_refused(simulator: Host, count: int) -> None:
    refused = simulator.call("GET", "/control/state")["networks"]["network_a"]["refused"]
    ensure(refused == count, f"{refused} requests rejected instead of {count}")


def run(server: Host, simulator: Host) -> None:
    FacebookSession.GRAPH = simulator.url
    # Without the crash reporter, which calls Meta.
    FacebookAdsApi.init(app_id="1", app_secret=SECRET, access_token=TOKEN, timeout=REQUEST_MAX, crash_log=False)
    shop = App(server, simulator, "900001", settings={"webEventId": True})
    mapping = [{"event": "install", "networkEvent": "Lead"}, {"event": "search", "networkEvent": "Search"}]
    settings = {"sdkEventMode": "app", "limitedDataUse": True}
    runner = App(server, simulator, "900002", settings=settings, eventMapping=mapping)
    scenes = [(shop, website(shop) + sdk_in_website_mode(shop)), (runner, sdk_in_app_mode(runner))]
    for app, expected in scenes:
        app.wait_until_delivered(len(expected))
    compared = [(app, compare(app, expected)) for app, expected in scenes]
    ensure_refused(simulator, 0)
    for app, events in compared:
        send_again(app, events[0])
        send_others(app, events)
    send_too_old(shop, compared[0][1][0])
    ensure_refused(simulator, 1)


def main() -> None:
    server_url, simulator_url = sys.argv[1:]
    server = Host(server_url, Authorization=f"Bearer {os.environ['KEY']}")
    try:
        run(server, Host(simulator_url))
    except (Disagreement, FacebookRequestError, requests.RequestException) as error:
        sys.exit(f"network_a_oracle.py: {error}")


if __name__ == "__main__":
    main()
