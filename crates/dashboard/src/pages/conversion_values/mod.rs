//! `/apps/{app}/conversion-values` — SKAdNetwork conversion values: editor, presets, simulation and
//! received postbacks.

mod editor;
pub(crate) mod page;
pub(crate) mod postbacks;
mod simulation;
