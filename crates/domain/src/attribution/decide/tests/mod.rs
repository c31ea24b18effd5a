//! Tests of the decision, rule by rule.

mod advertising_id;
mod apple;
mod delivered;
mod explanation;
mod flags;
mod order;
mod probabilistic;
mod properties;
mod scene;
mod tap;
mod third_party;
mod windows;
