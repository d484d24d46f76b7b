//! The demo.
pub(crate) async fn run(
    _: bool,
    _: Option<std::net::SocketAddr>,
    _: Option<std::path::PathBuf>,
) -> Result<std::process::ExitCode, String> {
    Err("x".into())
}
