//! Currencies and amounts.

use serde_json::Number;

/// Active ISO 4217 codes, without funds and metals.
const CODES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB \
    BRL BSD BTN BWP BYN BZD CAD CDF CHF CLF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN \
    ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD \
    JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT \
    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR \
    RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND \
    TOP TRY TTD TWD TZS UAH UGX USD UYI UYU UYW UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR \
    ZMW ZWG";
const NO_DIGITS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const THREE_DIGITS: &str = "BHD IQD JOD KWD LYD OMR TND";
const FOUR_DIGITS: &str = "CLF UYW";

/// An ISO 4217 code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IsoCurrency([u8; 3]);

impl IsoCurrency {
    pub(crate) fn parse(text: &str, is_lower_allowed: bool) -> Option<Self> {
        let mut code: [u8; 3] = text.as_bytes().try_into().ok()?;
        if is_lower_allowed {
            code.make_ascii_uppercase();
        }
        let currency = Self(code);
        currency.is_in(CODES).then_some(currency)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the number of decimals in an amount in major units.
    fn digits(self) -> usize {
        if self.is_in(NO_DIGITS) {
            0
        } else if self.is_in(THREE_DIGITS) {
            3
        } else if self.is_in(FOUR_DIGITS) {
            4
        } else {
            2
        }
    }

    fn is_in(self, list: &str) -> bool {
        list.as_bytes()
            .split(|&byte| byte == b' ')
            .any(|one| one == self.0)
    }
}

/// An amount as received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReceivedMoney {
    pub(crate) amount: Number,
    pub(crate) currency: IsoCurrency,
}

impl ReceivedMoney {
    /// Formats the amount as `29.99 USD`.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.amount, self.currency.as_str())
    }

    /// Formats an amount in minor units as `29.99 USD`.
    pub(crate) fn minor_units_text(&self) -> String {
        let digits = self.currency.digits();
        let padded = format!("{:0>width$}", self.amount.to_string(), width = digits + 1);
        let (whole, fraction) = padded.split_at(padded.len() - digits);
        let point = if digits == 0 { "" } else { "." };
        format!("{whole}{point}{fraction} {}", self.currency.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("USD", false, true)]
    #[case("usd", false, false)]
    #[case("usd", true, true)]
    #[case("XXX", true, false)]
    #[case("US", true, false)]
    #[case("D Z", false, false)]
    fn accepts_only_known_currencies(
        #[case] text: &str,
        #[case] is_lower_allowed: bool,
        #[case] is_known: bool,
    ) {
        let parsed = IsoCurrency::parse(text, is_lower_allowed);
        assert_eq!(parsed.is_some(), is_known);
    }

    #[rstest]
    #[case(2999, "USD", "29.99 USD")]
    #[case(5, "USD", "0.05 USD")]
    #[case(2999, "JPY", "2999 JPY")]
    #[case(2999, "KWD", "2.999 KWD")]
    fn formats_minor_units(#[case] amount: u64, #[case] currency: &str, #[case] text: &str) {
        let currency = IsoCurrency::parse(currency, false).expect("a currency");
        let amount = Number::from(amount);
        assert_eq!(ReceivedMoney { amount, currency }.minor_units_text(), text);
    }
}
