//! Whether a simulation agrees with what was recorded.

/// After the simulated figures of a history with its recorded settings.
pub const fn model(fits: bool) -> &'static str {
    if fits {
        "The model fits."
    } else {
        "The model does not fit: the queue may have been paused, the git host may have been down, settings may \
         have changed, or the line may have been full at the start. Compare the simulated rows with each \
         other, and not with the recorded times."
    }
}
