//! signalbox app
