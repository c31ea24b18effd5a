"""Holds network_a against its official client: network_a_oracle.py SERVER SIMULATOR, with a full key in KEY.

Lets things happen at Tributary, and looks at the simulator for what was sent of them. Then the client is told the same
facts in the clear (the address instead of its hash, and so on), and has to come to the same payload. At last the
client sends, too, and the simulator has to understand it. scripts/network_a_oracle.sh starts what this needs.
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
# The person, as the client is told.
EMAIL = " Joe@EXAMPLE.com "
PHONE = "+1 (415) 555-2671"
# The person, as Tributary is told: of the address in lower case, of the number's digits.
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

# Seconds until everything must have been delivered, and seconds one request may take.
DELIVERY_MAX = 40
REQUEST_MAX = 10
# The network takes events of the last seven days.
TOO_OLD_SECONDS = 8 * 24 * 60 * 60
TOO_OLD = (100, 2804003)


class Disagreement(Exception):
    """Something is not as it has to be."""


def ensure(holds: bool, words: str) -> None:
    if not holds:
        raise Disagreement(words)


def found_in(text: str, pattern: str, words: str) -> str:
    """What the group of a pattern stands for in a text."""
    found = re.search(pattern, text)
    if found is None:
        raise Disagreement(f"{words}: {text!r}")
    return found[1]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Host:
    """A host that speaks JSON."""

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
        """Where a path leads."""
        url = self.url + path
        answer = self.session.get(url, headers=headers, allow_redirects=False, timeout=REQUEST_MAX)
        return answer.headers.get("location", "")


@dataclass(frozen=True)
class Click:
    """A tap on a link, with everything that the network may hear of it."""

    id: str
    link: str
    fbclid: str
    fbp: str
    address: str
    agent: str
    earliest_ms: int
    latest_ms: int

    def fbc(self, payload: Json) -> str:
        """The click as the network writes it down. Its time is the server's; it has to lie around the tap."""
        said = payload["user_data"].get("fbc", "")
        millis = int(found_in(said, r"^fb\.1\.(\d{13})\.", "no fbc with a time in milliseconds"))
        ensure(self.earliest_ms <= millis <= self.latest_ms, f"not the time of the click: {said!r}")
        return f"fb.1.{millis}.{self.fbclid}"


class App:
    """An app that is connected to a pixel of its own."""

    def __init__(self, server: Host, simulator: Host, pixel: str, **integration: Any) -> None:
        self.server, self.simulator, self.pixel = server, simulator, pixel
        # Phones and browsers have no API key.
        self.outside = Host(server.url)
        account = {"network": "network_a", "pixelId": pixel, "accessToken": TOKEN, "appSecret": SECRET}
        simulator.call("POST", "/control/accounts", account)
        made = server.call("POST", "/api/v1/apps", {"name": pixel, "webEvents": {"enabled": True}})["data"]
        self.id, self.sdk_key = made["id"], made["sdk"]["liveKey"]
        settings = {"pixelId": pixel, **integration.pop("settings")}
        credentials = {"accessToken": TOKEN, "appSecret": SECRET}
        change = {"enabled": True, "settings": settings, "credentials": credentials, **integration}
        self.call("PATCH", "/integrations/network_a", change)

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        return self.server.call(method, f"/api/v1/apps/{self.id}{path}", body)

    def track(self, door: str, body: Json) -> Any:
        return self.outside.call("POST", f"/api/track/{door}", body, **{"X-Tributary-Key": self.sdk_key})

    def tap(self, link: Json, agent: str, address: str) -> Click:
        """Makes a link and taps it."""
        made = self.call("POST", "/links", {"name": "Oracle", **link})["data"]["url"]
        earliest = now_ms()
        # Capitals and all: nothing of it may change on its way.
        fbclid, fbp = f"IwAR2kZ8q_AbCd-{self.pixel}", f"fb.1.{earliest}.1098115397"
        path = made.removeprefix(self.server.url)
        headers = {"User-Agent": agent, "X-Forwarded-For": address}
        location = self.outside.location(f"{path}?fbclid={fbclid}&fbp={fbp}", **headers)
        click = found_in(location, r"ar_click_id(?:=|%3D)(clk_[0-9a-z]+)", "the link led nowhere with a click")
        return Click(click, made, fbclid, fbp, address, agent, earliest, now_ms())

    def wait_until_delivered(self, count: int) -> None:
        end = time.monotonic() + DELIVERY_MAX
        while True:
            found = self.call("GET", "/deliveries?limit=500")["data"]
            statuses = [one["status"] for one in found]
            if (len(found) >= count and "pending" not in statuses) or time.monotonic() > end:
                break
            time.sleep(0.2)
        ensure(statuses == ["delivered"] * count, f"{count} should be delivered: {json.dumps(found, indent=2)}")

    def received(self) -> dict[str, Json]:
        """What the simulator has of its pixel, by event id."""
        path = f"/control/networks/network_a/conversions?account={self.pixel}&limit=1000"
        conversions = self.simulator.call("GET", path)["conversions"]
        return {one["eventId"]: one for one in conversions}

    def logged(self, name: str) -> Json:
        """The one event of this name that came from a phone."""
        found = self.call("GET", f"/events?name={name}&limit=500")["data"]
        found = [one for one in found if one["source"] != "web"]
        ensure(len(found) == 1, f"not one event {name}: {found}")
        return found[0]

    def derived_id(self, event: Json, network_event: str) -> str:
        """The id that an event has at the network when its sender's is not handed on."""
        number = 0
        for digit in event["id"].removeprefix("evt_"):
            number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(digit)
        return sha256(f"{self.id}|{uuid.UUID(int=number)}|network_a|{network_event}")[:32]


@dataclass(frozen=True)
class Expected:
    """An event that must have arrived, as the client is told of it, and the click that it is credited to."""

    event: Event
    click: Click

    def told(self, payload: Json) -> Event:
        """The event with the one thing that only what arrived can tell: when the server saw the click."""
        self.event.user_data.fbc = self.click.fbc(payload)
        return self.event


def website(app: App) -> list[Expected]:
    """What a person does on a website."""
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
    """A phone on which the app is opened for the first time; gives its id."""
    phone = str(uuid.uuid4())
    # First of all, so that the install is told with it.
    app.track("identify", {"deviceId": phone, "matching": {"email": EMAIL_HASH, "phone": PHONE_HASH}})
    referrer = {"referrer": f"ar_click_id={click.id}"}
    said = {"deviceId": phone, "platform": "android", "osVersion": "14", "installReferrer": referrer, **device}
    credited = app.track("configure", said)["data"]["attribution"]["network"]
    ensure(credited == "network_a", f"the install is credited to {credited}")
    return phone


def of_phone(app: App, kind: str, name: str, **told: Any) -> Event:
    """An event of a phone, as the client is told of it."""
    logged = app.logged(kind)
    return Event(
        event_name=name, event_time=logged["timestampMs"] // 1000, event_id=app.derived_id(logged, name), **told
    )


def phone_as_website(app: App) -> list[Expected]:
    """What a person does who wants no personal advertising, in an app whose events go as a website's."""
    click = app.tap({"androidUrl": STORE}, ANDROID, "203.0.113.25")
    phone = install(app, click, consent={"adUserData": True, "adPersonalization": False})
    sold = {"eventId": "sdk-purchase", "name": "purchase", "timestampMs": now_ms(), "revenue": 19.9, "currency": "USD"}
    app.track("events", {"deviceId": phone, "events": [sold]})
    person = UserData(
        email=EMAIL, phone=PHONE, external_id=sha256(phone), client_ip_address=click.address,
        client_user_agent=click.agent, fbp=click.fbp,
    )
    told = {
        "action_source": ActionSource.WEBSITE, "event_source_url": click.link, "opt_out": True, "user_data": person,
    }
    paid = CustomData(value=19.9, currency="USD")
    return [
        Expected(of_phone(app, "install", "Lead", **told), click),
        Expected(of_phone(app, "purchase", "Purchase", custom_data=paid, **told), click),
    ]


def phone_as_app(app: App) -> list[Expected]:
    """What a person does in an app whose events go as an app's, with limited data use."""
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
    # What is not known is empty; the client would make it null.
    info = ExtendedDeviceInfo(
        ext_info_version="a2", app_package_name="com.example.runner", short_version="3.2.0",
        long_version="3.2.0 (412)", os_version="14", device_model_name="Pixel 8", locale="en_US",
        timezone_abbreviation="", carrier="", screen_width="900", screen_height="2000", screen_density="2.5",
        cpu_core_count="", total_disk_space_gb="", free_disk_space_gb="", device_time_zone="America/New_York",
    )
    told = {
        "action_source": ActionSource.APP, "user_data": person, "data_processing_options": ["LDU"],
        "data_processing_options_country": 0, "data_processing_options_state": 0,
        "app_data": AppData(advertiser_tracking_enabled=1, application_tracking_enabled=1, extinfo=info),
    }
    search = CustomData(search_string="red shoes")
    return [
        Expected(of_phone(app, "install", "Lead", **told), click),
        Expected(of_phone(app, "search", "Search", custom_data=search, **told), click),
    ]


def comparable(payload: Json) -> list[str]:
    """A payload as lines. The hashes of a person have no order; everything else has to be the same to the letter."""
    person = {name: sorted(one) if isinstance(one, list) else one for name, one in payload["user_data"].items()}
    return json.dumps({**payload, "user_data": person}, indent=2, sort_keys=True).splitlines()


def normalized(event: Event) -> Json:
    """What the client makes of an event; it alone writes currencies in lower case."""
    payload = event.normalize()
    if "currency" in payload.get("custom_data", {}):
        payload["custom_data"]["currency"] = payload["custom_data"]["currency"].upper()
    return payload


def compare(app: App, expected: list[Expected]) -> list[Event]:
    """Compares everything that arrived with what the client makes of it; gives the client's events."""
    arrived = app.received()
    ids = {one.event.event_id for one in expected}
    ensure(arrived.keys() == ids, f"{sorted(arrived)} arrived instead of {sorted(ids)}")
    events, differences = [], []
    for one in expected:
        payload = arrived[one.event.event_id]["payload"]
        event = one.told(payload)
        events.append(event)
        title = f"{event.action_source.value} {event.event_name}"
        sides = (comparable(normalized(event)), comparable(payload))
        lines = list(difflib.unified_diff(*sides, "official client", "tributary", lineterm="", n=99))
        if lines:
            differences.append("\n".join([f"{title} differs:", *lines]))
        else:
            print(f"the same: {title}")
    ensure(not differences, "\n\n".join(differences))
    return events


def send(app: App, events: list[Event]) -> None:
    """Sends with the client; all of it has to be received."""
    answer = EventRequest(pixel_id=app.pixel, events=events, partner_agent="oracle").execute()
    ensure(answer.events_received == len(events), f"{answer.events_received} of {len(events)} were received")


def ensure_counted(app: App, event: Event, times: int) -> None:
    found = app.received().get(event.event_id, {})
    counts = {name: found.get(name) for name in ("counted", "times")}
    ensure(counts == {"counted": 1, "times": times}, f"{event.event_name}, {event.event_id}: {counts}")


def send_again(app: App, event: Event) -> None:
    """The client sends an event of ours: the network has it already."""
    ensure_counted(app, event, times=1)
    send(app, [event])
    ensure_counted(app, event, times=2)
    print(f"a duplicate: {event.event_name}")


def send_others(app: App, events: list[Event]) -> None:
    """The client sends the same under other ids: the network counts it, and reads it as it was meant."""
    for event in events:
        event.event_id = f"client-{event.event_id}"
    send(app, events)
    arrived = app.received()
    for event in events:
        ensure_counted(app, event, times=1)
        payload = arrived[event.event_id]["payload"]
        ensure(comparable(payload) == comparable(event.normalize()), f"read otherwise: {json.dumps(payload)}")
    print(f"received from the client: {len(events)}")


def send_too_old(app: App, event: Event) -> None:
    """The client hears why an event is refused."""
    event.event_time, event.event_id = int(time.time()) - TOO_OLD_SECONDS, "too-old"
    try:
        send(app, [event])
    except FacebookRequestError as error:
        found = (error.api_error_code(), error.api_error_subcode())
        ensure(found == TOO_OLD, f"too old, and refused as {found}")
    else:
        raise Disagreement("an event that is too old was taken")
    ensure("too-old" not in app.received(), "a refused event was counted")
    print("refused: too old")


def ensure_refused(simulator: Host, count: int) -> None:
    refused = simulator.call("GET", "/control/state")["networks"]["network_a"]["refused"]
    ensure(refused == count, f"{refused} requests were refused, not {count}")


def run(server: Host, simulator: Host) -> None:
    FacebookSession.GRAPH = simulator.url
    # Without its reporter of crashes, which calls the real host.
    FacebookAdsApi.init(app_id="1", app_secret=SECRET, access_token=TOKEN, timeout=REQUEST_MAX, crash_log=False)
    shop = App(server, simulator, "900001", settings={"webEventId": True})
    mapping = [{"event": "install", "networkEvent": "Lead"}, {"event": "search", "networkEvent": "Search"}]
    settings = {"sdkEventMode": "app", "limitedDataUse": True}
    runner = App(server, simulator, "900002", settings=settings, eventMapping=mapping)
    scenes = [(shop, website(shop) + phone_as_website(shop)), (runner, phone_as_app(runner))]
    for app, expected in scenes:
        app.wait_until_delivered(len(expected))
    told = [(app, compare(app, expected)) for app, expected in scenes]
    ensure_refused(simulator, 0)
    for app, events in told:
        send_again(app, events[0])
        send_others(app, events)
    send_too_old(shop, told[0][1][0])
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
