//! Reads the end of a long text, such as a log.

use reqwest::Method;
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::HostError;

use super::answer::{self, Quota};
use super::reply::silent;
use super::{As, Client};

/// The most bytes that a text may have.
const MAX_READ: usize = 64 * 1024 * 1024;

/// The end of a text.
pub(crate) struct Tail {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes come before them.
    pub(crate) before: usize,
}

impl Client {
    /// Reads `/repos/OWNER/NAME` followed by `rest`, and keeps the last bytes. The API may refer to
    /// another host, which is sent no credentials.
    pub(crate) async fn tail(
        &self,
        repo: &RepoName,
        rest: &str,
        most: usize,
    ) -> Result<Tail, HostError> {
        let address = self.address(repo, rest)?;
        let what = format!("GET {}", address.path());
        let token = self.token(As::Repository(repo)).await?;
        self.admit(&Method::GET, &address)?;
        let request = self.request(&token, &Method::GET, &address);
        let mut reply = request.send().await.map_err(|error| silent(&what, error))?;
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let now = self.clock.now();
        // The limits of another host say nothing about the API.
        let is_api = reply.url().origin() == self.api.origin();
        if is_api {
            self.note_quota(Quota::read(&headers), now);
        }
        let mut tail = Tail { bytes: Vec::new(), before: 0 };
        while let Some(chunk) = reply.chunk().await.map_err(|error| silent(&what, error))? {
            tail.bytes.extend_from_slice(&chunk);
            if tail.bytes.len() > 2 * most {
                tail.cut(most);
            }
            if tail.before + tail.bytes.len() > MAX_READ {
                let words = format!("{what}: the text is longer than {MAX_READ} bytes");
                return Err(HostError::Rejected { words });
            }
        }
        tail.cut(most);
        if !(200..300).contains(&status) {
            let words = answer::words(&tail.bytes);
            let limited = answer::limited(status, &headers, &words, now);
            return Err(match limited.filter(|_| is_api) {
                Some(retry_at) => {
                    self.block(retry_at);
                    HostError::RateLimited { retry_at }
                }
                None => answer::error(&what, true, status, &headers, &words),
            });
        }
        Ok(tail)
    }
}

impl Tail {
    fn cut(&mut self, most: usize) {
        let too_many = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..too_many);
        self.before += too_many;
    }
}
