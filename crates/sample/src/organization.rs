//! The sample organization: owner, apps, links and conversion values.

use crate::history::DAYS;
use crate::sample_app::{AdLink, SHOP, SampleApp};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::sync::{Arc, Mutex};
use tributary_domain::access::key::{ApiKey, KeyCreation, KeyKind, KeyText};
use tributary_domain::access::person::{Email, Role, SETUP_LINK_LIFETIME, SetupLink};
use tributary_domain::access::{Actor, AppsWrite, Authorized, Environment, Permission};
use tributary_domain::app::{App, AppCreation, FraudPolicy, SdkRevenue};
use tributary_domain::integration::Network;
use tributary_domain::link::{self, Link, LinkKind, Slug};
use tributary_domain::report::range::{DayRange, days_before};
use tributary_domain::runtime::{Clock, Random, Runtime};
use tributary_domain::skan::{CoarseValue, Condition, ConversionValue, Document, Window};
use tributary_domain::vocabulary::calendar::today;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, KeyId, LinkId, OrganizationId, UserId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_store::{NewKey, NewSetupLink, Organization, Redemption, Store, StoreResult};

/// [`DAYS`] in the type of day arithmetic.
const HISTORY_DAYS: i32 = DAYS.cast_signed();
const ORGANIZATION: &str = "Riverbend Studio";

/// An app in the sample.
struct AppSpec {
    name: &'static str,
    /// Prefix of the app's identifiers and of the slugs of its links.
    slug_prefix: &'static str,
    app_store_id: i64,
    timezone: &'static str,
    /// Approximate number of events in the app's history.
    events: u64,
    fraud: FraudPolicy,
}

const APPS: [AppSpec; 3] = [
    AppSpec {
        name: "Lantern – photo editor",
        slug_prefix: "lantern",
        app_store_id: 6_450_000_001,
        timezone: "America/New_York",
        events: 33_000,
        fraud: FraudPolicy::Hold,
    },
    AppSpec {
        name: "Stride – running coach",
        slug_prefix: "stride",
        app_store_id: 6_450_000_002,
        timezone: "Europe/Berlin",
        events: 24_000,
        fraud: FraudPolicy::Refuse,
    },
    AppSpec {
        name: "Quill – pocket notes",
        slug_prefix: "quill",
        app_store_id: 6_450_000_003,
        timezone: "Asia/Tokyo",
        events: 15_000,
        fraud: FraudPolicy::Flag,
    },
];

/// Links of each app: name, end of the slug, and network of the ads.
const LINKS: [(&str, &str, Network); 4] = [
    ("Social – stories", "social", Network::A),
    ("Search – brand terms", "search", Network::B),
    ("Short video – creators", "video", Network::C),
    ("Assistant – answers", "assistant", Network::D),
];

/// The person who signs in.
#[derive(Debug, Clone)]
pub struct SampleOwner {
    /// Email address.
    pub email: Email,
    /// Hash of the password.
    pub password_hash: String,
    /// API key with full permission; only its digest is stored.
    pub key: KeyText,
}

/// The organization and its apps. Each app has a generated history, which is not written yet.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Permission to change everything in the organization.
    pub writer: Authorized<AppsWrite>,
    /// The apps.
    pub apps: Vec<SampleApp>,
    /// The apps' App Store ids, as named in postbacks.
    pub(crate) app_store_ids: Vec<i64>,
}

/// A fixed clock with reproducible random numbers. Never used for secrets.
struct FixedRuntime {
    at: Timestamp,
    random: Mutex<ChaCha8Rng>,
}

impl Clock for FixedRuntime {
    fn now(&self) -> Timestamp {
        self.at
    }
}

impl Random for FixedRuntime {
    fn fill(&self, bytes: &mut [u8]) {
        let mut random = self.random.lock().expect("the lock is not poisoned");
        random.fill_bytes(bytes);
    }
}

/// Returns a fixed runtime for ids and times in the past.
pub(crate) fn fixed_runtime(at: Timestamp, seed: u64) -> Runtime {
    let random = Mutex::new(ChaCha8Rng::seed_from_u64(seed));
    let fixed = Arc::new(FixedRuntime { at, random });
    Runtime::new(fixed.clone(), fixed)
}

/// Creates the organization with its owner, apps and links, as of the day before a history that
/// ends at `now`. Returns the apps with their generated history.
pub async fn create_sample(
    store: &dyn Store,
    owner: SampleOwner,
    now: Timestamp,
    seed: u64,
) -> StoreResult<Sample> {
    // The day before the first day of the history, which begins in each app's time zone.
    let begin = days_before(Day::of(now), HISTORY_DAYS).begins_at();
    let runtime = fixed_runtime(begin, seed);
    let organization = Organization {
        id: OrganizationId::new(begin, runtime.random_bytes()),
        name: Name::parse(ORGANIZATION).expect("a valid name"),
        created_at: begin,
    };
    let writer = Authorized::operator(organization.id);
    store
        .create_organization(organization, runtime.origin(Actor::Operator, None, None))
        .await?;
    create_owner(store, &runtime, writer.organization(), owner).await?;
    let mut apps = Vec::new();
    for (spec, seed) in APPS.iter().zip(seed..) {
        apps.push(create_app(store, &runtime, &writer, (spec, now), seed).await?);
    }
    Ok(Sample {
        writer,
        apps,
        app_store_ids: APPS.iter().map(|spec| spec.app_store_id).collect(),
    })
}

/// Creates the owner through a setup link, as for every owner.
async fn create_owner(
    store: &dyn Store,
    runtime: &Runtime,
    organization: OrganizationId,
    owner: SampleOwner,
) -> StoreResult<()> {
    let at = runtime.now();
    let token = runtime.new_key(KeyKind::Setup, Environment::Live);
    let link = SetupLink {
        organization,
        role: Role::Owner,
        // As for the first owner of an instance, who gets a key.
        email: None,
        expires_at: at.plus(SETUP_LINK_LIFETIME),
        used_at: None,
        created_by: None,
    };
    let new = NewSetupLink {
        link,
        digest: token.digest(),
    };
    let origin = runtime.origin(Actor::Operator, None, None);
    store.create_setup_link(new, origin).await?;
    let user = UserId::new(at, runtime.random_bytes());
    let creation = KeyCreation {
        id: KeyId::new(at, runtime.random_bytes()),
        organization,
        hint: owner.key.hint().to_owned(),
        at,
    };
    let key = ApiKey::new(creation, "First key".to_owned(), Permission::Full);
    let redemption = Redemption {
        user,
        email: owner.email,
        password_hash: owner.password_hash,
        passkey: None,
        recovery_codes: Vec::new(),
        first_key: Some(NewKey {
            key,
            digest: owner.key.digest(),
        }),
    };
    let origin = runtime.origin(Actor::User(user), None, None);
    store
        .redeem_setup_link(token.digest(), redemption, origin)
        .await?;
    Ok(())
}

async fn create_app(
    store: &dyn Store,
    runtime: &Runtime,
    writer: &Authorized<AppsWrite>,
    (spec, now): (&AppSpec, Timestamp),
    seed: u64,
) -> StoreResult<SampleApp> {
    let origin = || runtime.origin(Actor::Operator, None, None);
    let app = new_app(runtime, writer.organization(), spec);
    let app = store.create_app(writer, app, Vec::new(), origin()).await?;
    let mut links = Vec::new();
    for (name, end, network) in LINKS {
        let mut link = new_link(
            runtime,
            app.id,
            name,
            &format!("{}-{end}", spec.slug_prefix),
        );
        link.network = Some(network);
        link.fallback_url = Some(address(&format!("{SHOP}/{}", spec.slug_prefix)));
        let link = store.create_link(writer, link, origin()).await?.id;
        let network = Some(network);
        links.push(AdLink { link, network });
    }
    let mut funnel = new_link(
        runtime,
        app.id,
        "Website",
        &format!("{}-web", spec.slug_prefix),
    );
    funnel.kind = LinkKind::WebFunnel;
    funnel.destination_url = Some(address(&format!("{SHOP}/{}", spec.slug_prefix)).into());
    let funnel = store.create_link(writer, funnel, origin()).await?.id;
    let skan = store.put_skan(
        writer,
        app.id,
        conversion_values(),
        Precondition::None,
        origin(),
    );
    skan.await?;
    Ok(SampleApp {
        app: app.id,
        rules: app.attribution,
        links,
        funnel,
        environment: Environment::Live,
        begin: history_begin(now, &app.timezone),
        days: DAYS,
        events: spec.events,
        seed,
    })
}

/// Returns the start of the first day of a history that ends today. Days begin at midnight in the
/// app's time zone, so that its users sleep at night.
fn history_begin(now: Timestamp, zone: &Timezone) -> Timestamp {
    let first = days_before(today(now, zone), HISTORY_DAYS - 1);
    let days = DayRange {
        from: first,
        to: first,
        zone: zone.clone(),
    };
    days.period().0
}

fn new_app(runtime: &Runtime, organization: OrganizationId, spec: &AppSpec) -> App {
    let at = runtime.now();
    let sdk_key = |environment| {
        runtime
            .new_key(KeyKind::Sdk, environment)
            .reveal()
            .to_owned()
    };
    let birth = AppCreation {
        id: AppId::new(at, runtime.random_bytes()),
        organization,
        live_key: sdk_key(Environment::Live),
        test_key: sdk_key(Environment::Test),
        at,
    };
    let mut app = App::new(birth, Name::parse(spec.name).expect("a name"));
    app.timezone = Timezone::parse(spec.timezone).expect("a zone");
    app.ios.bundle_id = Some(format!("com.example.{}", spec.slug_prefix));
    app.ios.app_store_id = Some(spec.app_store_id.to_string());
    app.android.package_name = Some(format!("com.example.{}", spec.slug_prefix));
    app.web_events_enabled = true;
    // The SDK reports purchases in the app, the billing provider reports subscriptions.
    app.sdk.revenue = SdkRevenue::Count;
    app.attribution.fraud = spec.fraud;
    app.attribution.probabilistic_ios = true;
    app
}

fn new_link(runtime: &Runtime, app: AppId, name: &str, slug: &str) -> Link {
    let at = runtime.now();
    let birth = link::LinkCreation {
        id: LinkId::new(at, runtime.random_bytes()),
        app,
        at,
    };
    let slug = Slug::parse(slug).expect("a slug");
    Link::new(&birth, Name::parse(name).expect("a name"), slug)
}

fn address(text: &str) -> HttpsUrl {
    HttpsUrl::parse(text).expect("an address")
}

/// Returns conversion values in four steps, from first open to purchase.
fn conversion_values() -> Document {
    let steps = [
        ("Paid", "purchase", 40, CoarseValue::High),
        ("Trial", "start_trial", 20, CoarseValue::Medium),
        ("Account", "sign_up", 10, CoarseValue::Low),
        ("Opened", "install", 0, CoarseValue::Low),
    ];
    let value =
        |index, (name, event, fine, coarse_value): (&str, &str, u8, CoarseValue)| ConversionValue {
            name: name.to_owned(),
            fine_value: (index == 0).then_some(fine),
            coarse_value,
            lock: false,
            conditions: vec![Condition {
                event: event.to_owned(),
                min_count: Some(1),
                max_count: None,
                min_revenue: None,
                max_revenue: None,
            }],
        };
    let window = |index: u8| Window {
        index,
        enabled: true,
        lock_on: None,
        // Only window 0 contains the install.
        values: steps
            .into_iter()
            .filter(|step| index == 0 || step.1 != "install")
            .map(|step| value(index, step))
            .collect(),
    };
    Document {
        enabled: true,
        currency: Currency::USD,
        accept_test_signals: false,
        windows: vec![window(0), window(1), window(2)],
    }
}
