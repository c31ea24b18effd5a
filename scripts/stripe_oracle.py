"""Posts webhooks that Stripe's official client signed: stripe_oracle.py SERVER, with a full key in KEY.

Tributary and the client must agree on which signatures are valid, and the payment must be recorded once.
scripts/network_a_oracle.sh starts the server.
"""

import json
import os
import sys
import time
from typing import Any

import requests
import stripe

Json = dict[str, Any]

SECRET = "whsec_0123456789abcdef"
OTHER_SECRET = "whsec_fedcba9876543210"
# Stripe's tolerance, and the time limit of a request, in seconds.
TOLERANCE = 300
REQUEST_MAX = 10


class Disagreement(Exception):
    """A comparison failed."""


def ensure(holds: bool, message: str) -> None:
    if not holds:
        raise Disagreement(message)


class Server:
    """A Tributary server with one app."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False
        self.key = key
        made = self.call("POST", "/api/v1/apps", {"name": "Stripe", "billing": {"stripe": {"secret": SECRET}}})
        self.app, self.webhook = made["data"]["id"], made["data"]["billing"]["stripe"]["url"]
        self.path = "/" + self.webhook.split("/", 3)[3]

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = self.session.request(method, self.url + path, json=body, headers=headers, timeout=REQUEST_MAX)
        ensure(answer.ok, f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json()

    def post(self, body: str, signature: str) -> int:
        """Posts a webhook as Stripe does and returns the status."""
        headers = {"Stripe-Signature": signature, "Content-Type": "application/json; charset=utf-8"}
        answer = self.session.post(self.url + self.path, body.encode(), headers=headers, timeout=REQUEST_MAX)
        return answer.status_code


def invoice() -> str:
    """Returns a paid invoice, formatted as Stripe formats its events."""
    now = int(time.time())
    return json.dumps({
        "id": "evt_oracle", "object": "event", "api_version": "2025-04-30.basil", "created": now, "livemode": True,
        "type": "invoice.paid",
        "data": {"object": {
            "id": "in_oracle", "object": "invoice", "amount_paid": 1099, "currency": "usd", "customer": "cus_1",
            "billing_reason": "subscription_create", "customer_email": "jörg@example.com",
            "parent": {"subscription_details": {"subscription": "sub_1", "metadata": {"tributary_user_id": "joe"}}},
        }},
    }, indent=2, ensure_ascii=False)


def is_valid(body: str, signature: str) -> bool:
    """Asks Stripe's client."""
    try:
        stripe.Webhook.construct_event(body, signature, SECRET)
    except stripe.SignatureVerificationError:
        return False
    return True


def run(server: Server) -> None:
    body, now = invoice(), int(time.time())
    sign = stripe.WebhookSignature.generate_signature_header
    valid, other = sign(body, SECRET), sign(body, OTHER_SECRET, now)
    rolled = f"{other},{sign(body, SECRET, now).split(',')[1]}"
    # The margin covers the seconds that pass between the client's check and the server's.
    signatures = {
        "valid": valid,
        "while the secret is rolled": rolled,
        "almost too old": sign(body, SECRET, now - TOLERANCE + 30),
        "too old": sign(body, SECRET, now - TOLERANCE - 30),
        "another secret": other,
        "another body": sign(body.replace("1099", "9999"), SECRET),
        "another scheme": valid.replace("v1=", "v0="),
        "no signature": f"t={now}",
    }
    for name, signature in signatures.items():
        expected = 200 if is_valid(body, signature) else 401
        found = server.post(body, signature)
        ensure(found == expected, f"{name}: {found} instead of {expected}")
        print(f"{found}: {name}")
    ensure(is_valid(body, valid) and not is_valid(body, other), "the client accepts anything")
    log = server.call("GET", f"/api/v1/apps/{server.app}/events")["data"]
    paid = [(one["name"], one["revenue"]["amount"], one["userId"]) for one in log]
    ensure(paid == [("purchase", 10.99, "joe")], f"recorded: {json.dumps(log, indent=2)}")


def main() -> None:
    try:
        run(Server(sys.argv[1], os.environ["KEY"]))
    except (Disagreement, requests.RequestException) as error:
        sys.exit(f"stripe_oracle.py: {error}")


if __name__ == "__main__":
    main()
