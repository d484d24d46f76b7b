//! Figures of a simulation, and whether it agrees with what was recorded.

/// After the simulated figures of a history with its recorded settings.
pub const fn model(fits: bool) -> &'static str {
    if fits {
        "The model fits."
    } else {
        "The model does not fit: the queue may have been paused, the git host may have been down, settings may \
         have changed, or the queue may not have been empty at the start. Compare the simulated rows with each \
         other, and not with the recorded times."
    }
}

/// A mean and the ends of its interval: `12 [10, 15]`.
pub fn interval([mean, low, high]: [f64; 3], digits: usize) -> String {
    format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]")
}
