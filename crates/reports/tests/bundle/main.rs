//! Reading of bundles, and refusals.

mod builder;
mod internal;
mod members;
mod properties;
mod reader;
mod refusals;

use std::ops::ControlFlow;

use builder::ArchiveBuilder;
use signalbox_reports::bundle::{self, BundleError, BundleLimits, BundleSummary, Member};

pub(crate) const META: &str = r#"{
  "version": "1", "cli_version": "cargo=0.7.8 git=abc rustc=1.80", "org": "acme",
  "repo": {"repo": {"host": "example.com", "owner": "acme", "name": "widgets"},
    "repo_root": "/w", "repo_url": "https://bot:secret@example.com/acme/widgets.git",
    "repo_head_sha": "0123456789abcdef", "repo_head_sha_short": null,
    "repo_head_branch": "refs/heads/main", "repo_head_commit_epoch": 1700000000,
    "repo_head_commit_message": "Fix it\n", "repo_head_author_name": "A",
    "repo_head_author_email": "a@example.com"},
  "bundle_upload_id": "u1", "bundle_upload_id_v2": "u2", "tags": [],
  "file_sets": [{"file_set_type": "Junit", "glob": "*.xml", "files": [
    {"original_path": "/w/a.xml", "original_path_rel": null, "path": "junit/0",
     "last_modified_epoch_ns": 1700000000123456789, "owners": ["@acme/a"], "team": null}]}],
  "envs": {"CI": "1"}, "upload_time_epoch": 1700000100, "test_command": null,
  "os_info": "linux", "codeowners": null, "use_uncloned_repo": null,
  "quarantined_tests": [{"name": "a", "parentName": "s", "className": null, "file": "a.py",
    "id": "i", "timestamp_millis": 5, "is_quarantined": true, "failure_message": "m",
    "variant": null}], "unheard_of": {"x": [1]}}"#;
pub(crate) const XML: &str =
    r#"<testsuite name="s"><testcase name="a"/><testcase name="b"/></testsuite>"#;

pub(crate) fn nothing(_: Member<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(crate) fn read(bytes: &[u8]) -> Result<BundleSummary, BundleError> {
    bundle::read(bytes, &BundleLimits::default(), nothing)
}

pub(crate) fn read_within(
    bytes: &[u8],
    limits: BundleLimits,
) -> Result<BundleSummary, BundleError> {
    bundle::read(bytes, &limits, nothing)
}

pub(crate) fn plain() -> ArchiveBuilder {
    ArchiveBuilder::default().file("meta.json", META)
}
