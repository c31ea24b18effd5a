//! Claims of user ids with the public SDK key: a stranger does not get a customer's purchases.

use crate::billing::{Shop, event, with, with_payment};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tributary_testkit::{TestServer, TestServerSettings, on_both_engines};

/// Builds a purchase by a user, without a device id from the provider.
fn purchase(id: &str, user: &str) -> Value {
    let fields = json!({
        "subscriber_attributes": null, "app_user_id": user, "original_app_user_id": user, "aliases": [user],
        "original_transaction_id": format!("sub-{user}"),
    });
    with(
        with_payment(event("INITIAL_PURCHASE", id, 0), &format!("t-{id}"), 4.99),
        fields,
    )
}

impl Shop<'_> {
    async fn identify(&self, device: &str, user: &str) {
        let body = json!({"deviceId": device, "userId": user});
        self.track("identify", body).await.expect(204);
    }

    async fn configure_device(&self, device: &str, model: &str) {
        let body =
            json!({"deviceId": device, "platform": "android", "osVersion": "14", "model": model});
        self.track("configure", body).await.expect(200);
    }

    async fn create_identity_secret(&self) -> String {
        let path = format!("{}/identity/secret", self.app);
        let made = self
            .server
            .post(&path, &self.key, json!({}))
            .await
            .expect(201);
        made.data()["secret"].as_str().unwrap().to_owned()
    }

    async fn identify_signed(&self, device: &str, user: &str, signature: &str) {
        let body = json!({"deviceId": device, "userId": user, "userIdSignature": signature});
        self.track("identify", body).await.expect(204);
    }

    async fn device_of(&self, event: &str) -> Value {
        self.logged_event(event).await["deviceId"].clone()
    }

    async fn identity_flags(&self, device: &str) -> Value {
        let path = format!("{}/devices/{device}", self.app);
        let shown = self.server.get(&path, &self.key).await.expect(200).data();
        shown["identityFlags"].clone()
    }
}

/// Signs a user id as an app's backend does.
fn sign(user: &str, secret: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(user.as_bytes());
    let bytes = mac.finalize().into_bytes();
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

on_both_engines! {
    async fn a_stranger_does_not_take_over_a_customer(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.configure_device("phone", "Pixel 8").await;
        shop.identify("phone", "customer").await;
        shop.send_accepted(&purchase("n-1", "customer")).await;
        assert_eq!(shop.device_of("n-1").await, "phone");
        shop.configure_device("thief", "Pixel 8").await;
        shop.identify("thief", "customer").await;
        let renewal = with(purchase("n-2", "customer"), json!({"type": "RENEWAL"}));
        shop.send_accepted(&renewal).await;
        for id in ["n-1", "n-2"] {
            assert_eq!(shop.device_of(id).await, "phone", "{id}");
        }
        // The provider's own attribute outranks every claim.
        let attributes = json!({"subscriber_attributes": {"tributaryId": {"value": "tablet"}}});
        shop.send_accepted(&with(with(purchase("n-3", "customer"), attributes), json!({"type": "RENEWAL"}))).await;
        assert_eq!(shop.device_of("n-1").await, "tablet");
    }

    async fn a_device_that_claims_twenty_users_gets_none_of_them(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.configure_device("fake", "Pixel 8").await;
        for number in 0..20 {
            shop.identify("fake", &format!("user-{number}")).await;
        }
        for number in [0, 2, 19] {
            let id = format!("n-{number}");
            shop.send_accepted(&purchase(&id, &format!("user-{number}"))).await;
            assert_eq!(shop.device_of(&id).await, Value::Null, "{id}");
        }
        assert_eq!(shop.identity_flags("fake").await, json!(["tooManyUsers"]));
        shop.install_with("phone", json!({"userId": "user-2"})).await;
        assert_eq!(shop.device_of("n-2").await, "phone");
        assert_eq!(shop.identity_flags("phone").await, json!([]));
    }

    async fn a_flagged_device_does_not_outrank_a_later_one(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        shop.configure_device("emulator", "iPhone15,2").await;
        shop.identify("emulator", "customer").await;
        shop.send_accepted(&purchase("n-1", "customer")).await;
        assert_eq!(shop.device_of("n-1").await, "emulator", "the only claim");
        shop.configure_device("phone", "Pixel 8").await;
        shop.identify("phone", "customer").await;
        assert_eq!(shop.device_of("n-1").await, "phone");
    }

    async fn many_claims_from_one_address_are_flagged_and_used(engine: Engine) {
        let settings = TestServerSettings {
            proxies: vec!["127.0.0.1".parse().unwrap()],
            ..TestServerSettings::default()
        };
        let server = TestServer::start_with(engine, settings).await;
        let shop = Shop::open(&server).await;
        for number in 0..21 {
            let body = json!({"deviceId": format!("device-{number}"), "userId": format!("user-{number}")});
            let request = server.request(Method::POST, "/api/track/identify");
            let request = request
                .header("x-tributary-key", &shop.sdk_key)
                .header("content-type", "application/json")
                .header("x-forwarded-for", "203.0.113.9");
            server.send(request.body(body.to_string())).await.expect(204);
        }
        assert_eq!(shop.identity_flags("device-19").await, json!([]));
        assert_eq!(shop.identity_flags("device-20").await, json!(["claimBurst"]));
        shop.send_accepted(&purchase("n-1", "user-20")).await;
        assert_eq!(shop.device_of("n-1").await, "device-20");
    }

    async fn matching_values_change_three_times(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        for number in 0..6 {
            let hash = number.to_string().repeat(64);
            let body = json!({"deviceId": "phone", "matching": {"email": hash}});
            shop.track("identify", body).await.expect(204);
            let flags = if number > 3 { json!(["tooManyMatchingChanges"]) } else { json!([]) };
            assert_eq!(shop.identity_flags("phone").await, flags, "{number}");
        }
    }

    async fn a_signed_claim_outranks_a_stranger_who_was_first(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let old = shop.create_identity_secret().await;
        let secret = shop.create_identity_secret().await;
        shop.identify("stranger", "customer").await;
        shop.send_accepted(&purchase("n-1", "customer")).await;
        assert_eq!(shop.device_of("n-1").await, "stranger");
        shop.identify_signed("liar", "customer", &sign("customer", "idsec_guessed")).await;
        shop.identify_signed("thief", "customer", &sign("thief", &secret)).await;
        assert_eq!(shop.device_of("n-1").await, "stranger", "wrong signatures");
        assert_eq!(shop.identity_flags("liar").await, json!(["wrongSignature"]));
        // The previous secret is valid until the next rotation.
        shop.identify_signed("phone", "customer", &sign("customer", &old)).await;
        assert_eq!(shop.device_of("n-1").await, "phone");
        assert_eq!(shop.identity_flags("phone").await, json!([]));
        shop.create_identity_secret().await;
        shop.identify_signed("tablet", "other", &sign("other", &old)).await;
        assert_eq!(shop.identity_flags("tablet").await, json!(["wrongSignature"]));
        let app = server.get(&shop.app, &shop.key).await.expect(200).data();
        assert_eq!(app["sdk"]["identitySecret"], json!({"set": true}));
        assert!(!app.to_string().contains(&secret));
    }

    async fn unsigned_claims_are_not_used_if_the_app_requires_signatures(engine: Engine) {
        let server = TestServer::start(engine).await;
        let shop = Shop::open(&server).await;
        let secret = shop.create_identity_secret().await;
        shop.update_app(json!({"sdk": {"identity": "signed"}})).await;
        shop.identify("stranger", "customer").await;
        shop.install_with("stranger-2", json!({"userId": "customer"})).await;
        shop.send_accepted(&purchase("n-1", "customer")).await;
        assert_eq!(shop.device_of("n-1").await, Value::Null);
        for device in ["stranger", "stranger-2"] {
            assert_eq!(shop.identity_flags(device).await, json!(["unsignedUser"]));
        }
        let signature = sign("customer", &secret);
        shop.install_with("phone", json!({"userId": "customer", "userIdSignature": signature})).await;
        assert_eq!(shop.device_of("n-1").await, "phone");
    }
}
