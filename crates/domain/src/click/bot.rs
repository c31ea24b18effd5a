//! Bot detection for clicks.
//!
//! Crawlers, link previews and prefetching browsers are redirected like everyone else. Their clicks
//! are recorded with the reason and never credited. So are clicks on test links. In-app browsers,
//! where most ad clicks happen, must not be mistaken for the crawlers of the same companies.

use crate::link::Link;

/// Reason why a click never counts: a bot made it, or it is on a test link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotReason {
    /// `HEAD` request.
    Head,
    /// Prefetched by the browser, before a tap.
    Prefetch,
    /// No user agent.
    NoUserAgent,
    /// The user agent names a crawler, an HTTP library or a link preview.
    KnownAgent,
    /// The click is on a test link, whoever made it.
    TestLink,
}

crate::keywords! {
    BotReason {
        Head => "head",
        Prefetch => "prefetch",
        NoUserAgent => "no_user_agent",
        KnownAgent => "known_agent",
        TestLink => "test_link",
    }
}

/// Returns why a click on a link never counts: it is a test link, or a bot made the click.
pub const fn uncounted_reason(link: &Link, bot: Option<BotReason>) -> Option<BotReason> {
    if link.is_test {
        Some(BotReason::TestLink)
    } else {
        bot
    }
}

/// Values of `Purpose`, `Sec-Purpose`, `X-Purpose` and `X-Moz` that mark a prefetch.
const PREFETCH_PURPOSES: &[&str] = &["prefetch", "preview", "prerender"];

/// Parts of bot user agents, in lower case and sorted, so that the words with the same first letter
/// are neighbours. Words that end in `bot` need no entry.
const BOT_SUBSTRINGS: &[&str] = &[
    "aiohttp",
    "apache-httpclient",
    "apis-google",
    "bingpreview",
    "chatgpt-user",
    "chrome-lighthouse",
    "claude-user",
    "crawl",
    "curl/",
    "datadogsynthetics",
    "embedly",
    "facebookcatalog",
    "facebookexternalhit",
    "flipboardproxy",
    "go-http-client",
    "google web preview",
    "google-inspectiontool",
    "googleother",
    "gtmetrix",
    "headlesschrome",
    "ia_archiver",
    "iframely",
    "kakaotalk-scrap",
    "libwww-perl",
    "line-poker",
    "mediapartners-google",
    "meta-externalagent",
    "meta-externalfetcher",
    "mistralai-user",
    "nikto",
    "okhttp",
    "perplexity-user",
    "phantomjs",
    "pingdom",
    "playwright",
    "postmanruntime",
    "puppeteer",
    "python-httpx",
    "python-requests",
    "python-urllib",
    "selenium",
    "skypeuripreview",
    "slack-imgproxy",
    "slurp",
    "spider",
    "sqlmap",
    "statuscake",
    "vkshare",
    "wget",
    "zgrab",
];

/// Prefixes of bot user agents, in lower case. Elsewhere in a user agent they also occur in phone
/// names and longer words. `WhatsApp/…` is WhatsApp's link preview; a tap in WhatsApp opens the
/// system's browser.
const BOT_PREFIXES: &[&str] = &[
    "whatsapp/",
    "viber",
    "snap url preview",
    "java/",
    "python/",
    "ruby",
    "perl",
    "php/",
    "guzzlehttp",
    "node",
    "undici",
    "axios/",
    "got/",
    "got (",
    "httpie/",
    "insomnia/",
    "scrapy/",
    "faraday",
    "rest-client/",
    "reqwest/",
    "hyper/",
    "dart/",
];

/// Phone names that end in `bot`.
const NOT_BOTS: &[&str] = &["cubot"];

/// Returns why a click counts as a bot's; `None` for a person's. `purposes` are the values of all
/// headers that state the purpose of a request.
pub fn detect_bot(is_head: bool, purposes: &[&str], user_agent: Option<&str>) -> Option<BotReason> {
    let user_agent = user_agent.unwrap_or_default().trim().as_bytes();
    let is_prefetch = |purpose: &&str| {
        let mut words = PREFETCH_PURPOSES.iter();
        words.any(|word| contains_ignoring_case(purpose.as_bytes(), word.as_bytes()))
    };
    if is_head {
        Some(BotReason::Head)
    } else if purposes.iter().any(is_prefetch) {
        Some(BotReason::Prefetch)
    } else if user_agent.is_empty() {
        Some(BotReason::NoUserAgent)
    } else if is_known(user_agent) {
        Some(BotReason::KnownAgent)
    } else {
        None
    }
}

fn is_known(user_agent: &[u8]) -> bool {
    let begins_with = |word: &&str| starts_ignoring_case(user_agent, word.as_bytes());
    BOT_PREFIXES.iter().any(begins_with) || has_bot_substring(user_agent) || has_bot(user_agent)
}

/// Returns whether a user agent contains one of [`BOT_SUBSTRINGS`]. Every tap is checked, so one
/// pass compares each position only with the words that begin with its letter.
fn has_bot_substring(user_agent: &[u8]) -> bool {
    let mut rest = user_agent;
    while let Some((first, after)) = rest.split_first() {
        let candidates = words_with_first(first.to_ascii_lowercase());
        if candidates
            .iter()
            .any(|word| starts_ignoring_case(rest, word.as_bytes()))
        {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns the words in [`BOT_SUBSTRINGS`] that begin with a letter in lower case.
fn words_with_first(letter: u8) -> &'static [&'static str] {
    let index = usize::from(letter.wrapping_sub(b'a'));
    let range = WORDS_BY_LETTER.get(index).copied();
    range
        .and_then(|(begin, end)| BOT_SUBSTRINGS.get(begin..end))
        .unwrap_or_default()
}

/// Number of letters from `a` to `z`.
const LETTERS: usize = 26;

/// Where the words with each first letter begin and end in [`BOT_SUBSTRINGS`].
const WORDS_BY_LETTER: [(usize, usize); LETTERS] = words_by_letter();

const fn words_by_letter() -> [(usize, usize); LETTERS] {
    let mut ranges = [(0, 0); LETTERS];
    let mut index = 0;
    while index < BOT_SUBSTRINGS.len() {
        let letter = (BOT_SUBSTRINGS[index].as_bytes()[0] - b'a') as usize;
        if ranges[letter].1 == 0 {
            ranges[letter].0 = index;
        }
        index += 1;
        ranges[letter].1 = index;
    }
    ranges
}

/// Returns whether a text starts with a word, ignoring the case of ASCII letters.
fn starts_ignoring_case(text: &[u8], word: &[u8]) -> bool {
    let start = text.get(..word.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Returns whether a text contains a word, ignoring the case of ASCII letters.
fn contains_ignoring_case(text: &[u8], word: &[u8]) -> bool {
    let mut parts = text.windows(word.len());
    parts.any(|part| part.eq_ignore_ascii_case(word))
}

/// Returns whether a word ends in `bot`: `Googlebot/2.1`, `AdsBot-Google`,
/// `+https://example.com/bot.html`.
fn has_bot(user_agent: &[u8]) -> bool {
    let is_exception = |word: &[u8]| {
        let mut names = NOT_BOTS.iter();
        names.any(|name| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    let mut words = user_agent.split(|byte| !byte.is_ascii_alphabetic());
    words.any(|word| {
        let end = word
            .last_chunk()
            .is_some_and(|end: &[u8; 3]| end.eq_ignore_ascii_case(b"bot"));
        end && !is_exception(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)")]
    #[case("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)")]
    #[case("TelegramBot (like TwitterBot)")]
    #[case("Twitterbot/1.0")]
    #[case("LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)")]
    #[case("Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)")]
    #[case("AdsBot-Google (+http://www.google.com/adsbot.html)")]
    #[case(
        "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/41.0 Mobile Safari/537.36 (compatible; AdsBot-Google-Mobile; +http://www.google.com/mobile/adsbot.html)"
    )]
    #[case("Mozilla/5.0 (compatible; TikTokSpider; ttspider-feedback@tiktok.com)")]
    #[case(
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot"
    )]
    #[case(
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
    )]
    #[case("WhatsApp/2.23.20.0")]
    #[case("WhatsApp/2.24.4.78 A")]
    #[case("curl/8.5.0")]
    #[case("Wget/1.21.4")]
    #[case("python-requests/2.31.0")]
    #[case("Go-http-client/2.0")]
    #[case("okhttp/4.12.0")]
    #[case(
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/126.0.0.0 Safari/537.36"
    )]
    #[case("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")]
    #[case(
        "Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)"
    )]
    #[case("SomeCrawler/3.0")]
    #[case("my own bot")]
    #[case("Mozilla/5.0 (iPhone; CPU iPhone OS 14_0 like Mac OS X) CUBOT (compatible; Examplebot)")]
    #[case("node")]
    #[case("Java/17.0.1")]
    fn detects_crawlers_libraries_and_previews(#[case] user_agent: &str) {
        assert_eq!(
            detect_bot(false, &[], Some(user_agent)),
            Some(BotReason::KnownAgent)
        );
    }

    #[rstest]
    #[case::safari(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1"
    )]
    #[case::chrome(
        "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36"
    )]
    #[case::facebook_ios(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [FBAN/FBIOS;FBAV/466.0.0;FBDV/iPhone15,2;FBMD/iPhone;FBSN/iOS;FBSV/17.5;FBSS/3]"
    )]
    #[case::facebook_android(
        "Mozilla/5.0 (Linux; Android 13; SM-S918B Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/125.0 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/466.0.0.0;]"
    )]
    #[case::instagram(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Instagram 335.0.0.0 (iPhone15,2; iOS 17_5_1; en_US; en; scale=3.00; 1179x2556; 611)"
    )]
    #[case::instagram_on_a_phone_called_ruby(
        "Mozilla/5.0 (Linux; Android 12; 22101316G Build/SP1A; wv) AppleWebKit/537.36 Chrome/125 Mobile Safari/537.36 Instagram 300.0 Android (31/12; 440dpi; 1080x2171; Xiaomi/Redmi; 22101316G; ruby; mt6877; en_GB; 501)"
    )]
    #[case::tiktok(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 musical_ly_34.5.0 JsSdk/2.0 NetType/WIFI Channel/App Store ByteLocale/en Region/US isDarkMode/0 WKWebView/1 BytedanceWebview/d8a21c6"
    )]
    #[case::tiktok_android(
        "Mozilla/5.0 (Linux; Android 13; Pixel 7 Build/TQ3A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126 Mobile Safari/537.36 trill_340503 BytedanceWebview/d8a21c6"
    )]
    #[case::cubot(
        "Mozilla/5.0 (Linux; Android 10; CUBOT NOTE 20 Build/QP1A) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/110 Mobile Safari/537.36"
    )]
    #[case::cubot_with_underscores(
        "Mozilla/5.0 (Linux; Android 8.1.0; CUBOT_X18_Plus) AppleWebKit/537.36 Chrome/110 Mobile Safari/537.36"
    )]
    #[case::google_app(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/320.0.6 Mobile/15E148 Safari/604.1"
    )]
    #[case::pinterest(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 [Pinterest/iOS]"
    )]
    #[case::snapchat(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Snapchat/12.90.0.45 (like Safari/8617.2.4.10.8, panda)"
    )]
    #[case::line(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Safari Line/14.9.0"
    )]
    fn accepts_browsers_and_in_app_browsers(#[case] user_agent: &str) {
        assert_eq!(detect_bot(false, &[], Some(user_agent)), None);
    }

    #[test]
    fn clicks_on_test_links_never_count_whoever_made_them() {
        let link = crate::link::tests::any_link();
        let test_link = Link {
            is_test: true,
            ..link.clone()
        };
        for bot in [None, Some(BotReason::Head)] {
            assert_eq!(uncounted_reason(&link, bot), bot);
            assert_eq!(uncounted_reason(&test_link, bot), Some(BotReason::TestLink));
        }
    }

    #[rstest]
    #[case::head(true, &[], Some("Mozilla/5.0"), Some(BotReason::Head))]
    #[case::prefetch(false, &["prefetch"], Some("Mozilla/5.0"), Some(BotReason::Prefetch))]
    #[case::prerender(false, &["prefetch;prerender"], Some("Mozilla/5.0"), Some(BotReason::Prefetch))]
    #[case::anonymous(false, &["prefetch;anonymous-client-ip"], Some("Mozilla/5.0"), Some(BotReason::Prefetch))]
    #[case::preview(false, &["x", "Preview"], Some("Mozilla/5.0"), Some(BotReason::Prefetch))]
    #[case::another_purpose(false, &["navigate"], Some("Mozilla/5.0"), None)]
    #[case::no_user_agent(false, &[], None, Some(BotReason::NoUserAgent))]
    #[case::empty_user_agent(false, &[], Some(" "), Some(BotReason::NoUserAgent))]
    fn detects_head_prefetch_and_missing_user_agent(
        #[case] is_head: bool,
        #[case] purposes: &[&str],
        #[case] user_agent: Option<&str>,
        #[case] expected: Option<BotReason>,
    ) {
        assert_eq!(detect_bot(is_head, purposes, user_agent), expected);
    }

    #[test]
    fn every_word_is_found_in_any_case_and_place() {
        assert!(BOT_SUBSTRINGS.is_sorted());
        for word in BOT_SUBSTRINGS.iter().chain(PREFETCH_PURPOSES) {
            let lower = word.bytes().all(|byte| !byte.is_ascii_uppercase());
            assert!(lower, "{word} is in lower case");
        }
        for word in BOT_SUBSTRINGS {
            for text in [
                (*word).to_owned(),
                word.to_ascii_uppercase(),
                format!("Mozilla/5.0 é{word}"),
                format!("é{}/1.0", word.to_ascii_uppercase()),
            ] {
                let found = detect_bot(false, &[], Some(&text));
                assert_eq!(found, Some(BotReason::KnownAgent), "{text}");
            }
            let cut = &word[..word.len() - 1];
            assert!(!has_bot_substring(cut.as_bytes()), "{cut}");
        }
    }

    #[test]
    fn reasons_round_trip_through_their_text() {
        for reason in BotReason::ALL {
            assert_eq!(BotReason::parse(reason.as_str()), Some(*reason));
        }
    }
}
