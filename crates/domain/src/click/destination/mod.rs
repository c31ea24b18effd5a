//! Destination of a click: always one that the link or its app configures.
//!
//! The destination is a configured URL, or a store page built from configured ids. Parts of the
//! click's own URL can only become encoded query parameters, under names that the link allows.

use super::encoding::{PlusDecoding, decode, encode};
use super::query::ClickParameters;
use crate::app::App;
use crate::device::Platform;
use crate::link::{Link, LinkKind};
use crate::vocabulary::web_url::{HttpsUrl, PageUrl};
use std::borrow::Cow;

/// Maximum length of a destination URL in bytes. Servers and proxies reject request lines longer
/// than eight kilobytes. Passed parameters that no longer fit are left out.
pub const DESTINATION_BYTES_MAX: usize = 8_000;

const LINK_ID: &str = "ar_link_id";
const CLICK_ID: &str = "ar_click_id";
const OFFER: &str = "offer";
/// Parameters that only we may set.
const OURS: [&str; 3] = [LINK_ID, CLICK_ID, OFFER];

const APP_STORE: &str = "https://apps.apple.com/app/id";
const PLAY_STORE: &str = "https://play.google.com/store/apps/details";
/// Parameter that the Play Store passes to the installed app.
const REFERRER: &str = "referrer";

/// Destination of a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Redirect to this URL.
    Redirect(String),
    /// Our landing page, which shows both stores.
    Page,
}

/// A click that is being redirected.
#[derive(Debug, Clone, Copy)]
pub struct RedirectRequest<'a> {
    /// Link of the click.
    pub link: &'a Link,
    /// App of the link.
    pub app: &'a App,
    /// Platform of the click.
    pub platform: Platform,
    /// Parameters of the click's URL.
    pub parameters: &'a ClickParameters,
    /// Signed click id; `None` if the click could not be stored.
    pub click: Option<&'a str>,
}

impl RedirectRequest<'_> {
    /// Returns the destination.
    pub fn destination(&self) -> Destination {
        let url = match (self.link.kind, &self.link.destination_url) {
            (LinkKind::WebFunnel, Some(url)) => Some(self.funnel_url(url)),
            // Such a link cannot be created. If one exists anyway, the landing page is shown.
            (LinkKind::WebFunnel, None) => None,
            (LinkKind::AppInstall, _) => store_url(self.link, self.app, self.platform, self.click)
                .or_else(|| self.link.fallback_url.as_ref().map(text)),
        };
        url.map_or(Destination::Page, Destination::Redirect)
    }

    /// Builds the URL of a funnel: its own query and fragment, our parameters, and the parameters
    /// that the link passes on.
    fn funnel_url(&self, url: &PageUrl) -> String {
        let mut target = Target::of(url.as_str());
        target.remove(&[LINK_ID, CLICK_ID]);
        target.set(LINK_ID, &self.link.id.to_string());
        if let Some(click) = self.click {
            target.set(CLICK_ID, click);
        }
        if let Some(offer) = self.parameters.offer() {
            target.set(OFFER, offer.as_str());
        }
        for parameter in self.parameters.all() {
            if let Some(name) = self.passed_name(&parameter.key, &parameter.name) {
                target.set_if_fits(name, &parameter.value);
            }
        }
        target.into_url()
    }

    /// Returns the name under which a parameter is passed on; `None` if the link does not pass it
    /// on. The name is spelled as in the link's settings, or as sent if the link allows it by
    /// prefix.
    fn passed_name<'b>(&'b self, key: &str, sent: &'b str) -> Option<&'b str> {
        if OURS.contains(&key) {
            return None;
        }
        self.link
            .pass_params
            .iter()
            .find_map(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => key
                    .get(..prefix.len())
                    .filter(|same| same.eq_ignore_ascii_case(prefix))
                    .map(|_| sent),
                None => allowed.eq_ignore_ascii_case(key).then_some(allowed),
            })
    }
}

/// Returns the page of the app in its platform's store: the link's own URL, or one built from the
/// app's ids.
pub fn store_url(
    link: &Link,
    app: &App,
    platform: Platform,
    click: Option<&str>,
) -> Option<String> {
    match platform {
        Platform::Ios => link.ios_url.as_ref().map(text).or_else(|| {
            let id = app.ios.app_store_id.as_ref()?;
            Some(format!("{APP_STORE}{}", encode(id)))
        }),
        Platform::Android => {
            let url = link.android_url.as_ref().map(text).or_else(|| {
                let package = app.android.package_name.as_ref()?;
                Some(format!("{PLAY_STORE}?id={}", encode(package)))
            })?;
            Some(match click {
                Some(click) if is_play_page(&url) => with_referrer(&url, click),
                _ => url,
            })
        }
        Platform::Web => None,
    }
}

fn text(url: &HttpsUrl) -> String {
    url.as_str().to_owned()
}

fn is_play_page(url: &str) -> bool {
    let rest = url.strip_prefix(PLAY_STORE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '#', '/']))
}

/// Adds the click id to the referrer, which is all that the Play Store passes to the app. A
/// referrer in the configured URL stays in front.
fn with_referrer(url: &str, click: &str) -> String {
    let mut target = Target::of(url);
    let own = target.get(REFERRER).unwrap_or_default();
    let own = own
        .split('&')
        .filter(|pair| !pair.is_empty() && !is_named(pair, CLICK_ID));
    let ours = format!("{CLICK_ID}={click}");
    let parts: Vec<&str> = own.chain([ours.as_str()]).collect();
    target.set(REFERRER, &parts.join("&"));
    target.into_url()
}

/// Returns whether a query pair has this name, in any case and encoding.
fn is_named(pair: &str, name: &str) -> bool {
    let own = pair.split('=').next().unwrap_or_default();
    decode(own, PlusDecoding::Space).eq_ignore_ascii_case(name)
}

/// A URL whose query is edited. Other parts stay as they are written.
struct Target<'a> {
    base: &'a str,
    pairs: Vec<Cow<'a, str>>,
    /// Fragment, including `#`.
    fragment: &'a str,
}

impl<'a> Target<'a> {
    fn of(url: &'a str) -> Self {
        let (rest, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self {
            base,
            pairs: pairs.map(Cow::Borrowed).collect(),
            fragment,
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        let pair = self.pairs.iter().find(|pair| is_named(pair, name))?;
        let (_, value) = pair.split_once('=')?;
        Some(decode(value, PlusDecoding::Space).into_owned())
    }

    fn remove(&mut self, names: &[&str]) {
        let is_one = |pair: &Cow<'_, str>| names.iter().any(|name| is_named(pair, name));
        self.pairs.retain(|pair| !is_one(pair));
    }

    /// Sets a parameter, and replaces an existing one.
    fn set(&mut self, name: &str, value: &str) {
        self.remove(&[name]);
        let pair = format!("{}={}", encode(name), encode(value));
        self.pairs.push(Cow::Owned(pair));
    }

    fn set_if_fits(&mut self, name: &str, value: &str) {
        let pairs: usize = self.pairs.iter().map(|pair| pair.len() + 1).sum();
        let added = encode(name).len() + encode(value).len() + 2;
        if self.base.len() + pairs + added + self.fragment.len() <= DESTINATION_BYTES_MAX {
            self.set(name, value);
        }
    }

    fn into_url(self) -> String {
        let pairs: usize = self.pairs.iter().map(|pair| pair.len() + 1).sum();
        let mut url = String::with_capacity(self.base.len() + pairs + self.fragment.len());
        url.push_str(self.base);
        for (index, pair) in self.pairs.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(pair);
        }
        url.push_str(self.fragment);
        url
    }
}

#[cfg(test)]
mod tests;
