//! Tests with scripted networks and a manual clock, for situations that would take days.

mod ambiguity;
mod isolation;
mod outcomes;
mod pacing;
mod polling;
mod scene;
mod sharing;
