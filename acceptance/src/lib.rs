//! Nothing here: the acceptance tests are in `tests/`.
