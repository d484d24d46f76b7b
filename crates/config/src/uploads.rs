//! The store of uploads.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Config, ConfigError};

/// `[uploads]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Uploads {
    /// The store: `file:///FOLDER`, which several servers may share, or
    /// `s3://BUCKET/PREFIX`; default: `uploads` in the data folder.
    pub store: Option<String>,
    /// The URL of an S3-compatible service; default: AWS.
    pub endpoint: Option<String>,
    /// Its region; default: `AWS_REGION`, or `us-east-1`.
    pub region: Option<String>,
    /// The file with the id of an access key and, on a second line, its secret. Default:
    /// `AWS_ACCESS_KEY_ID` and the other variables, or the role of the machine.
    pub credentials_file: Option<PathBuf>,
}

/// A checked store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadPlace {
    /// A folder of this machine, which no other server reads.
    OwnFolder(PathBuf),
    /// A configured folder, which other servers may share.
    Folder(PathBuf),
    /// Objects in a bucket.
    Bucket {
        /// The bucket.
        name: String,
        /// The prefix of keys.
        prefix: String,
    },
}

impl Config {
    /// The store of uploads.
    pub fn upload_place(&self) -> Result<UploadPlace, ConfigError> {
        let Some(store) = &self.uploads.store else {
            return Ok(UploadPlace::OwnFolder(self.data_dir().join("uploads")));
        };
        let wrong = || {
            let problem = format!("{store:?} must be file:///FOLDER or s3://BUCKET/PREFIX");
            ConfigError::setting("uploads.store", problem)
        };
        let url = Url::parse(store).map_err(|_| wrong())?;
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err(wrong());
        }
        match url.scheme() {
            "file" => url.to_file_path().map(UploadPlace::Folder).map_err(|()| wrong()),
            "s3" => {
                let name = url.host_str().filter(|it| !it.is_empty()).ok_or_else(wrong)?.to_owned();
                let prefix = url.path().trim_matches('/').to_owned();
                Ok(UploadPlace::Bucket { name, prefix })
            }
            _ => Err(wrong()),
        }
    }

    /// The warning about a folder that other servers on the database cannot read; `None` when there
    /// are no others (`embedded`), or the folder is configured.
    pub fn unshared_uploads(&self, embedded: bool) -> Option<String> {
        match self.upload_place() {
            Ok(UploadPlace::OwnFolder(folder)) if !embedded => Some(format!(
                "uploads are kept in {}, which only this server reads: with several servers on \
                 this database set uploads.store to a shared folder or a bucket",
                folder.display()
            )),
            Ok(_) | Err(_) => None,
        }
    }

    /// The id and the secret of the access key.
    pub fn upload_credentials(&self) -> Result<Option<(String, String)>, ConfigError> {
        let Some(file) = &self.uploads.credentials_file else { return Ok(None) };
        let wrong = |problem: String| {
            ConfigError::setting(format!("uploads.credentials_file {}", file.display()), problem)
        };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let (Some(id), Some(secret), None) = (lines.next(), lines.next(), lines.next()) else {
            let rule = "must have two lines, the id of an access key and its secret";
            return Err(wrong(rule.to_owned()));
        };
        Ok(Some((id.to_owned(), secret.to_owned())))
    }
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let place = config.upload_place()?;
    let Uploads { endpoint, region, credentials_file, .. } = &config.uploads;
    let for_bucket = [
        ("endpoint", endpoint.is_some()),
        ("region", region.is_some()),
        ("credentials_file", credentials_file.is_some()),
    ];
    let is_bucket = matches!(place, UploadPlace::Bucket { .. });
    if let Some((key, _)) = for_bucket.iter().find(|(_, given)| *given && !is_bucket) {
        let problem = "only for a store s3://BUCKET/PREFIX";
        return Err(ConfigError::setting(format!("uploads.{key}"), problem));
    }
    let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    if let Some(url) = endpoint.as_ref().filter(|url| !is_web(url) || Url::parse(url).is_err()) {
        let problem = format!("{url:?} must start with https:// or http://");
        return Err(ConfigError::setting("uploads.endpoint", problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_folder_or_a_bucket() {
        let place = |store: &str| {
            let uploads = Uploads { store: Some(store.into()), ..Uploads::default() };
            Config { uploads, ..Config::default() }.upload_place().map_err(|it| it.to_string())
        };
        assert_eq!(place("file:///mnt/up"), Ok(UploadPlace::Folder("/mnt/up".into())));
        let bucket = |prefix: &str| {
            Ok(UploadPlace::Bucket { name: "ci-uploads".into(), prefix: prefix.into() })
        };
        assert_eq!(place("s3://ci-uploads"), bucket(""));
        assert_eq!(place("s3://ci-uploads/signalbox/"), bucket("signalbox"));
        for wrong in ["", "folder", "/mnt/up", "s3://", "s3://key@b/x", "gs://b", "s3://b?x=1"] {
            let error = place(wrong).expect_err("refused");
            assert!(error.starts_with("uploads.store: "), "{wrong}: {error}");
        }
        let own = Config::default().upload_place().expect("a place");
        assert_eq!(own, UploadPlace::OwnFolder("signalbox-data/uploads".into()));
    }

    #[test]
    fn what_only_a_bucket_needs_is_refused_elsewhere() {
        let uploads = Uploads { region: Some("eu-1".into()), ..Uploads::default() };
        let error = check(&Config { uploads, ..Config::default() }).expect_err("refused");
        assert_eq!(error.to_string(), "uploads.region: only for a store s3://BUCKET/PREFIX");
    }
}
