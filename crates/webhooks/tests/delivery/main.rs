//! What is posted, to whom, and to whom not.

mod hostile;
mod poster;
mod support;
