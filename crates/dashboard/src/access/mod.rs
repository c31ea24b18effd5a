//! Who is here, and what they may do. A handler that takes none of these has nothing to ask the store with.

pub(crate) mod cookie;
mod posted;
mod reader;
mod throttle;
mod visitor;

pub(crate) use posted::Posted;
pub(crate) use reader::Reader;
pub(crate) use throttle::Throttle;
pub(crate) use visitor::{Visitor, origin_of};
