//! Every public event, with the JSON Schema of its payload.
