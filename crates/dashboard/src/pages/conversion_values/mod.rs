//! `/apps/{app}/conversion-values` — which numbers devices hand to Apple: an editor, its presets, what a person would
//! get, and the postbacks that came.

mod editor;
pub(crate) mod page;
pub(crate) mod postbacks;
mod simulation;
