//! The product and the floors on sockets: the same HTTP library with the same settings.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{self, ServiceConfig};
use actix_web::{App, HttpResponse, HttpServer};
use signalbox_http::Api;

use crate::failure::{During, Failure};

/// A server that listens, until it is dropped or stopped.
pub(crate) struct Listening {
    /// Where.
    pub(crate) address: SocketAddr,
    handle: ServerHandle,
}

impl Listening {
    /// Stops immediately.
    pub(crate) async fn stop(self) {
        self.handle.stop(false).await;
    }
}

macro_rules! listen {
    ($app:expr) => {{
        let listener = TcpListener::bind("127.0.0.1:0").during("a port")?;
        let address = listener.local_addr().during("a port")?;
        let workers = std::thread::available_parallelism().map_or(2, |it| it.get().min(8));
        let server = HttpServer::new($app)
            .disable_signals()
            .workers(workers)
            // Floor and product run in turns; neither may close its idle connections.
            .keep_alive(Duration::from_mins(10))
            .listen(listener)
            .during("a server")?
            .run();
        let handle = server.handle();
        tokio::spawn(server);
        Ok(Listening { address, handle })
    }};
}

/// The product's routes, as its own server mounts them.
pub(crate) fn product(api: Api) -> Result<Listening, Failure> {
    listen!(move || signalbox_http::app(api.clone()))
}

/// A floor: a server with only these routes.
pub(crate) fn floor(
    routes: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
) -> Result<Listening, Failure> {
    listen!(move || App::new().configure(routes.clone()))
}

/// A floor that answers `GET /` with these bytes.
pub(crate) fn bytes(text: Vec<u8>) -> Result<Listening, Failure> {
    let text = web::Bytes::from(text);
    floor(move |config| {
        let text = text.clone();
        let answer = move || {
            let text = text.clone();
            async move { HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/plain")).body(text) }
        };
        config.route("/", web::get().to(answer));
    })
}

/// The reply of a floor's handler: a body, or a failure that the client will show.
pub(crate) fn reply(body: Result<HttpResponse, Failure>) -> HttpResponse {
    body.unwrap_or_else(|error| HttpResponse::InternalServerError().body(error.to_string()))
}
