//! Runs the tables that every SDK passes as well.

mod conversion_values;
mod tables;
