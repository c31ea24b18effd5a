//! Empty: the acceptance tests are in `tests/`.
