"""The client against a real server. scripts/clients.sh starts two: the second accepts one request per second and key."""

import os
import re
import threading
import time
import unittest
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

from tributary_client import Tributary, TributaryError, models

SERVER = os.environ["TRIBUTARY_SERVER"]
BUSY_SERVER, BUSY_KEY = os.environ["TRIBUTARY_BUSY_SERVER"], os.environ["TRIBUTARY_BUSY_API_KEY"]
PHONE = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36"


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


class Page(BaseHTTPRequestHandler):
    """A server that is not Tributary."""

    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *_: object) -> None:
        pass


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.tributary = Tributary(SERVER, os.environ["TRIBUTARY_API_KEY"])
        self.addCleanup(self.tributary.close)

    def app(self, name: str) -> str:
        app = self.tributary.create_app(body={"name": name, "webEvents": {"enabled": True}})
        return app["data"]["id"]

    def click(self, app: str, slug: str) -> str:
        """Creates a link to a shop and clicks it. Returns the id of the click."""
        body: models.CreateLinkRequest = {
            "name": slug,
            "slug": slug,
            "network": "network_a",
            "type": "web_funnel",
            "destinationUrl": "https://shop.example.com/start",
        }
        link = self.tributary.create_link(app, body=body)["data"]
        path = re.sub(r"^https?://[^/]+", "", link["url"])
        request = urllib.request.Request(f"{SERVER}{path}?fbclid=a", headers={"User-Agent": PHONE})
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.build_opener(NoRedirect).open(request)
        with caught.exception as redirect:
            found = re.search("clk_[0-9a-z]+", redirect.headers["Location"])
        assert found is not None
        return found[0]

    def test_a_web_event_counts_once_and_is_in_the_figures(self) -> None:
        app = self.app("Shop")
        event: models.AcceptWebEventRequest = {
            "eventId": "order-1",
            "eventType": "purchase",
            "revenue": "49.90",
            "currency": "USD",
            "arClickId": self.click(app, "python-shop"),
            "deviceId": "visitor-1",
            "timestampMs": int(time.time() * 1000),
            "sourceUrl": "https://shop.example.com/paid",
        }
        accepted = [self.tributary.accept_web_event(app, body=event)["data"]["duplicate"] for _ in range(2)]
        self.assertEqual(accepted, [False, True])
        [row] = self.tributary.get_stats(app, group_by="network", network="network_a")["data"]
        figures = (row.get("network"), row["clicks"], row["purchases"], row["revenue"])
        self.assertEqual(figures, ("network_a", 1, 1, 49.9))
        [found] = self.tributary.list_events(app, event_id="order-1")["data"]
        self.assertEqual(found["source"], "web")

    def test_items_are_read_page_after_page(self) -> None:
        app = self.app("Links")
        names = [f"Link {number}" for number in range(25)]
        self.tributary.create_links(app, body={"links": [{"name": name} for name in names]})
        found = [link["name"] for link in self.tributary.iter_links(app, limit=10)]
        self.assertCountEqual(found, names)

    def test_an_error_has_its_code_and_its_fields(self) -> None:
        with self.assertRaises(TributaryError) as caught:
            self.tributary.create_app(body={"name": "x" * 300, "timezone": "Moon/Sea"})
        error = caught.exception
        self.assertEqual((error.status, error.code, error.retryable), (422, "validation_failed", False))
        self.assertEqual(sorted(field["field"] for field in error.fields), ["name", "timezone"])
        self.assertRegex(error.request_id or "", "^req_")
        with Tributary(SERVER, "ak_live_wrong") as stranger, self.assertRaises(TributaryError) as caught:
            stranger.list_apps()
        self.assertEqual(caught.exception.code, "invalid_api_key")

    def test_deleting_returns_nothing(self) -> None:
        app = self.app("Deleted link")
        link = self.tributary.create_link(app, body={"name": "Old"})["data"]["id"]
        self.assertTrue(self.tributary.get_link_qr_png(app, link, logo=False).startswith(b"\x89PNG"))
        self.tributary.delete_link(app, link)
        with self.assertRaises(TributaryError) as caught:
            self.tributary.get_link(app, link)
        self.assertEqual(caught.exception.code, "link_not_found")

    def test_an_export_is_a_stream(self) -> None:
        app = self.app("Export")
        click = self.click(app, "python-export")
        [line] = b"".join(self.tributary.export(app, kind="clicks", format="ndjson")).splitlines()
        self.assertIn(click.encode(), line)

    def test_only_calls_that_are_safe_to_repeat_are_repeated(self) -> None:
        with Tributary(BUSY_SERVER, BUSY_KEY, retries=0) as impatient:
            with self.assertRaises(TributaryError) as caught:
                for _ in range(50):
                    impatient.list_apps()
        self.assertEqual((caught.exception.status, caught.exception.code), (429, "rate_limited"))
        with Tributary(BUSY_SERVER, BUSY_KEY) as patient:
            for _ in range(3):
                patient.list_apps()
            with self.assertRaises(TributaryError) as caught:
                for _ in range(50):
                    patient.create_app(body={"name": "Not repeated"})
        self.assertEqual(caught.exception.code, "rate_limited")

    def test_an_answer_of_something_else_is_recognised(self) -> None:
        with HTTPServer(("127.0.0.1", 0), Page) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with Tributary(f"http://127.0.0.1:{server.server_port}", "ak_live_x") as client:
                with self.assertRaises(TributaryError) as caught:
                    client.list_apps()
            server.shutdown()
        self.assertEqual((caught.exception.status, caught.exception.code), (307, "unexpected_response"))

    def wrong_calls(self) -> None:
        """mypy checks these: `strict` reports an ignored error that does not exist."""
        self.tributary.list_events()  # type: ignore[call-arg]
        self.tributary.list_events("app_1", page=2)  # type: ignore[call-arg]
        self.tributary.create_app(body={})  # type: ignore[typeddict-item]
        self.tributary.list_apps()["data"][0]["nam"]  # type: ignore[typeddict-item]


if __name__ == "__main__":
    unittest.main()
