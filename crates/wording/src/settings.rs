//! The page of queue settings, and warnings about them.

use std::fmt::Write;

use signalbox_domain::queue::{
    SETTINGS, SettingGroup, SettingKind, SettingSpec, Settings, SettingsWarning,
};

/// A warning about a combination of settings, without a full stop.
pub const fn settings_warning(warning: SettingsWarning) -> &'static str {
    match warning {
        SettingsWarning::DepthOnlyDelays => {
            "pendingFailureDepth without canOptimisticallyMerge only delays failures: \
             a failed pull request waits for later ones, and their success does not change its result"
        }
        SettingsWarning::BatchesOfOne => {
            "batchingMinSize 1 makes every batch a single pull request"
        }
        SettingsWarning::CapacitiesWithoutLanes => "targetCapacities has no effect in SINGLE mode",
        SettingsWarning::AgentsWithoutLimit => {
            "agentLabels has no effect without authorLimit, authorHourlyLimit, authorDailyMinutes or fairShare"
        }
        SettingsWarning::FewBisectionSlots => {
            "with reparentingMode ALL and bisectionConcurrency below a twentieth of concurrency, \
             pull requests that fail behind others wait long for a slot"
        }
    }
}

/// The title of a topic of settings.
pub const fn settings_group(group: SettingGroup) -> &'static str {
    match group {
        SettingGroup::Testing => "Testing",
        SettingGroup::Failures => "Failures",
        SettingGroup::Batching => "Batching",
        SettingGroup::Merging => "Merging",
        SettingGroup::Host => "Git host",
        SettingGroup::WithoutEffect => "Without effect",
    }
}

fn allowed(spec: &SettingSpec) -> String {
    match spec.kind {
        SettingKind::Whole { min, max, unit: "" } => format!("{min} to {max}"),
        SettingKind::Whole { min, max, unit } => format!("{min} to {max} {unit}"),
        SettingKind::Flag => "`true`, `false`".to_owned(),
        SettingKind::Word(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        SettingKind::Text { max } => format!("1 to {max} bytes"),
        SettingKind::Names { .. } => "list of names".to_owned(),
        SettingKind::Rules => "list of rules".to_owned(),
        SettingKind::Lines(syntax) => format!("list of `{}`", syntax.form()),
    }
}

/// The settings page of the documentation.
pub fn settings_page() -> String {
    let mut page = String::from(
        "# Settings of a queue\n\n\
         Change a setting with `signalbox queue set`, on the settings page, or with `updateQueue`;\n\
         `getQueue` returns all of them. `createQueue` takes `mode` and `concurrency`, and sets\n\
         `bisectionConcurrency` to the same number as `concurrency`.\n\n\
         This page is generated: `just gen` regenerates it.\n",
    );
    let defaults = Settings::default();
    for one in SettingGroup::ALL {
        // Writing to a String does not fail.
        let _title = writeln!(page, "\n## {}\n", settings_group(*one));
        page += "| setting | title | values | default | what it does |\n|---|---|---|---|---|\n";
        for spec in SETTINGS.iter().filter(|spec| spec.group == *one) {
            let default = spec.text(&defaults).filter(|text| !text.is_empty());
            let default = default.map_or("–".to_owned(), |text| format!("`{text}`"));
            let (name, title, doc) = (spec.name, spec.title, spec.doc());
            let _row =
                writeln!(page, "| `{name}` | {title} | {} | {default} | {doc} |", allowed(spec));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_one_row() {
        let page = settings_page();
        for spec in SETTINGS {
            assert_eq!(page.matches(&format!("\n| `{}` |", spec.name)).count(), 1, "{}", spec.name);
        }
    }
}
