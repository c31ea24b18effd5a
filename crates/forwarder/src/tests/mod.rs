//! What becomes of deliveries when networks answer by a script and time is told: everything that would take days.

mod ambiguity;
mod isolation;
mod outcomes;
mod scene;
