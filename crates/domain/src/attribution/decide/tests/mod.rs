//! The decision, rule by rule.

mod advertising;
mod apple;
mod explanation;
mod flags;
mod foreign;
mod likeness;
mod named;
mod order;
mod properties;
mod scene;
mod tap;
mod windows;
