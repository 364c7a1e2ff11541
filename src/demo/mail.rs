//! A mail server for the demo: speaks SMTP on loopback and keeps what it is sent.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use mailin::{Action, Handler, Response, Session, SessionBuilder, response};

/// The longest line that is read (RFC 5321 allows 1,000 octets).
const LINE_BYTES_MAX: u64 = 8 * 1024;
/// The largest mail that is kept.
const MAIL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One mail as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Mail {
    /// The envelope's recipients.
    pub to: Vec<String>,
    /// Headers and body.
    pub data: Vec<u8>,
}

impl Mail {
    /// The subject, unfolded; encoded words stay as they are.
    pub fn subject(&self) -> String {
        let text = String::from_utf8_lossy(&self.data);
        let mut lines = text.lines().skip_while(|line| !line.to_ascii_lowercase().starts_with("subject:"));
        let first = lines.next().unwrap_or_default();
        let rest = lines.take_while(|line| line.starts_with([' ', '\t']));
        let folded: Vec<&str> =
            std::iter::once(first.get("subject:".len()..).unwrap_or_default()).chain(rest).collect();
        folded.iter().map(|part| part.trim()).collect::<Vec<_>>().join(" ")
    }
}

/// The mail server; it serves until the process ends.
pub struct MailServer {
    /// Where it listens.
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Mail>>>,
}

impl MailServer {
    /// Starts serving on a free port of the loopback.
    ///
    /// # Errors
    /// Where no port can be had.
    pub fn start() -> io::Result<MailServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = received.clone();
        std::thread::Builder::new().name("demo-mail".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that breaks off is its own loss; the next one is served.
                let _ = serve(stream, &kept);
            }
        })?;
        Ok(MailServer { address, received })
    }

    /// What has arrived so far.
    pub fn received(&self) -> Vec<Mail> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(stream: TcpStream, received: &Arc<Mutex<Vec<Mail>>>) -> io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    let handler = Mailbox { mail: Mail::default(), received: received.clone() };
    let mut session = SessionBuilder::new("demo.watchfire").build(IpAddr::V4(Ipv4Addr::LOCALHOST), handler);
    session.greeting().write_to(&mut out)?;
    while let Some(response) = answer(&mut session, &mut lines)? {
        if response.action != Action::NoReply {
            response.write_to(&mut out)?;
            out.flush()?;
        }
        if response.action == Action::Close {
            break;
        }
    }
    Ok(())
}

fn answer(session: &mut Session<Mailbox>, lines: &mut impl BufRead) -> io::Result<Option<Response>> {
    let mut line = Vec::new();
    io::Read::take(&mut *lines, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok((!line.is_empty()).then(|| session.process(&line)))
}

struct Mailbox {
    mail: Mail,
    received: Arc<Mutex<Vec<Mail>>>,
}

impl Handler for Mailbox {
    fn mail(&mut self, _: IpAddr, _: &str, _: &str) -> Response {
        self.mail = Mail::default();
        response::OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        self.mail.to.push(to.to_owned());
        response::OK
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.mail.data.len() + bytes.len() > MAIL_BYTES_MAX {
            return Err(io::Error::other("the mail is too large"));
        }
        self.mail.data.extend_from_slice(bytes);
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        let mail = std::mem::take(&mut self.mail);
        self.received.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
        response::OK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_subject_is_read_whole() {
        let mail = Mail { to: vec![], data: b"To: a\r\nSubject: one\r\n two\r\nX: y\r\n\r\nbody".to_vec() };
        assert_eq!(mail.subject(), "one two");
    }
}
