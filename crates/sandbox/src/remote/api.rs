//! Requests to an engine, beside the requests that run a container.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions};
use bollard::{API_DEFAULT_VERSION, Docker};

use super::Left;
use crate::SandboxSettings;

/// The label of a container: whose it is.
pub(super) const LABEL: &str = "signalbox.place";
/// How long an engine may take for what is not a check.
const PATIENCE: Duration = Duration::from_mins(1);

/// What an error means, in words that do not depend on the kind of engine.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { status_code, message } => {
            let line = message.lines().next().unwrap_or_default();
            format!("{line} (status {status_code})")
        }
        Error::SocketNotFoundError(path) => format!("there is no socket {path}"),
        Error::RequestTimeoutError => "it does not answer".to_owned(),
        // The error of the client says only that it is one.
        error => {
            let mut words = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(error) = source {
                words = error.to_string();
                source = error.source();
            }
            words
        }
    }
}

/// The engine of the settings, in the newest version of the API that both know.
pub(super) async fn connect(settings: &SandboxSettings) -> Result<Docker, String> {
    let (host, tls) = (settings.container_host.as_str(), &settings.container_tls);
    let docker = if host.starts_with("tcp://") {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let files = ["key.pem", "cert.pem", "ca.pem"].map(|name| tls.join(name));
        // The client goes without a file that is missing.
        for file in &files {
            let read = std::fs::read(file);
            read.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        }
        let [key, cert, ca] = files;
        Docker::connect_with_ssl(host, &key, &cert, &ca, PATIENCE.as_secs(), API_DEFAULT_VERSION)
    } else {
        Docker::connect_with_unix(host, PATIENCE.as_secs(), API_DEFAULT_VERSION)
    };
    let docker = docker.map_err(|error| words(&error))?;
    in_time(docker.negotiate_version()).await.map_err(|error| words(&error))
}

/// What an engine answers in time. The client's own limit ends where an answer begins.
pub(super) async fn in_time<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.unwrap_or(Err(Error::RequestTimeoutError))
}

/// The same engine, for a request that may take so long.
pub(super) fn patient(docker: &Docker, time: Duration) -> Docker {
    docker.clone().with_timeout(time)
}

/// Whether the image of the settings is there. It is never pulled.
pub(super) async fn has_image(docker: &Docker, image: &str) -> Result<(), String> {
    let found = in_time(docker.inspect_image(image)).await.map_err(|error| match error {
        Error::DockerResponseServerError { status_code: 404, .. } => {
            format!("it has no image {image}: pull it there")
        }
        error => words(&error),
    })?;
    let volumes = found.config.and_then(|config| config.volumes).unwrap_or_default();
    if volumes.is_empty() {
        return Ok(());
    }
    // They would be writable, and are not what a check may use.
    Err(format!("the image {image} has volumes: use one without"))
}

/// The names of all containers of a place.
pub(super) async fn containers(docker: &Docker, place: &str) -> Result<Vec<String>, String> {
    let filters = HashMap::from([("label".to_owned(), vec![format!("{LABEL}={place}")])]);
    let options = ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
    let found =
        in_time(docker.list_containers(Some(options))).await.map_err(|error| words(&error))?;
    let names = found.into_iter().filter_map(|it| it.names?.into_iter().next());
    Ok(names.map(|name| name.trim_start_matches('/').to_owned()).collect())
}

/// Removes a container, with what still runs in it and its volumes; or remembers it. If the engine has
/// not confirmed its creation, one that is not found may still appear, and is remembered, too.
pub(super) async fn remove(docker: &Docker, name: &str, is_made: bool, left: &Left) {
    let options = RemoveContainerOptions { v: true, force: true, link: false };
    match in_time(docker.remove_container(name, Some(options))).await {
        Ok(()) => left.forget(name),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => {
            if is_made {
                left.forget(name);
            } else {
                left.add(name);
            }
        }
        Err(error) => {
            let error = words(&error);
            tracing::warn!(container = name, error, "could not remove the container of a check");
            left.add(name);
        }
    }
}
