//! An app's conversion-value configuration: which value its devices report to Apple, and when.
//!
//! A request body is read into a [`Draft`] and checked as a whole by [`validate()`]. [`replace`]
//! then makes it the current document and decides whether the conversion-value mapping changes.
//! [`warnings`] lists what is valid but probably not intended.
//!
//! [`postback`] parses postbacks, [`counting`] decides which of them count, and [`decode`] decodes
//! their values. [`device`] builds the document for a device, [`evaluate`] computes what the device
//! does with it, [`try_out`] simulates a device, and [`presets`] generate documents.

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
