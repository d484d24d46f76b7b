//! Posted messages, and allowed and refused addresses.

mod bad;
mod hostile;
mod poster;
mod support;
