//! What is posted, to whom, and to whom not.

mod bad;
mod hostile;
mod poster;
mod support;
