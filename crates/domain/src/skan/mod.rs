//! The conversion-value configuration of an app: which number its devices hand to Apple, and when.
//!
//! A document is read by the edge into a [`Draft`], checked as a whole by [`validate()`], and put
//! in the place of the present one by [`replace`], which decides whether the numbers now mean
//! something else. [`warnings`] names what is allowed and yet hardly meant.
//!
//! A postback is read by [`postback`], counted by [`counting`], and its number given a meaning by
//! [`decode`]. [`device`] is what a device is given, [`evaluate`] what it does with it, [`try_out`] plays one, and
//! [`presets`] write documents.

mod document;
mod draft;
mod field_path;

mod validate;

mod warning;

mod meaning;

mod configuration;

mod history;

pub mod counting;
pub mod decode;
pub mod device;
pub mod evaluate;
pub mod postback;
pub mod presets;
pub mod try_out;

#[cfg(test)]
mod samples;

pub use configuration::{Configuration, ConfigurationUpdate, ReplaceOutcome, patch, replace};
pub use document::{
    CONDITIONS_PER_VALUE_MAX, CONDITIONS_PER_VALUE_MIN, CoarseValue, Condition, ConversionValue,
    Document, EVENT_CHARS_MAX, FINE_VALUE_MAX, FINE_VALUE_WINDOW, INSTALL_EVENT, LockOn,
    VALUE_NAME_CHARS_MAX, VALUES_PER_WINDOW_MAX, WINDOW_INDEX_MAX, WINDOWS_MAX, Window,
};
pub use draft::{Draft, DraftCondition, DraftLockOn, DraftValue, DraftWindow};
pub use history::differences;
pub use validate::validate;
pub use warning::{Warning, warnings};
