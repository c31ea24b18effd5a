//! One file per page, named after its URL.

pub(crate) mod front;
pub(crate) mod home;
pub(crate) mod setup;

pub(crate) mod account;
pub(crate) mod audit_log;
pub(crate) mod confirm;
pub(crate) mod factors;
pub(crate) mod forgot;
pub(crate) mod keys;
pub(crate) mod second_step;
pub(crate) mod sign_in;
pub(crate) mod sign_out;
pub(crate) mod single_sign_on;
pub(crate) mod team;

pub(crate) mod app;
pub(crate) mod conversion_values;
pub(crate) mod deliveries;
pub(crate) mod device;
pub(crate) mod device_erasure;
pub(crate) mod events;
pub(crate) mod held;
pub(crate) mod integrations;
pub(crate) mod links;
pub(crate) mod notices;
pub(crate) mod passkeys;
pub(crate) mod personal_data;
pub(crate) mod portfolio;
pub(crate) mod reset;
pub(crate) mod sdk_keys;
pub(crate) mod settings;
pub(crate) mod undelivered;
pub(crate) mod what_if;
