//! One delivery to one mail server: connect, greet, secure, log in, hand over, leave.

use std::future::Future;
use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use tokio::time::{Instant, timeout, timeout_at};

use super::account::{Account, left_alone};
use super::fault::{Fault, Phase, judge};
use crate::clock::Clock;
use crate::receiver::email::Tls;
use crate::secret::SecretSource;
use crate::verdict::Verdict;

/// How long connecting, greeting, TLS and log-in may take together.
pub const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long handing over a message may take. Longer than the above: a server that scans the message before it
/// answers is slow, and a message given up too early arrives twice.
pub const HANDED_OVER_WITHIN: Duration = Duration::from_secs(60);
/// How long the answer to QUIT is waited for; the message is delivered by then.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// A mail server and how to speak to it.
pub(crate) struct Server {
    pub host: String,
    pub port: u16,
    pub hello: ClientId,
    pub mode: Tls,
    /// Present unless the mode is [`Tls::None`].
    pub tls: Option<TlsParameters>,
    pub login: Option<Login>,
    pub ready_within: Duration,
    pub now: Clock,
}

/// Who we are to the server.
pub(crate) struct Login {
    pub username: String,
    pub password: SecretSource,
    pub account: Account,
}

type Failed = (Phase, Fault);

impl Server {
    /// Hands a message over. `attempt` is how many tries there were before.
    pub async fn deliver(&self, envelope: &Envelope, message: &[u8], attempt: u32) -> Verdict {
        let Err((phase, fault)) = self.run(envelope, message).await else { return Verdict::Delivered };
        let named = |why: String| format!("smtp {}:{}: {why}", self.host, self.port);
        match judge(phase, &fault, self.mode, attempt) {
            Verdict::Delivered => Verdict::Delivered,
            Verdict::Retry { after, why } => Verdict::Retry { after, why: named(why) },
            Verdict::Refused { why } => Verdict::Refused { why: named(why) },
        }
    }

    async fn run(&self, envelope: &Envelope, message: &[u8]) -> Result<(), Failed> {
        self.not_left_alone().await?;
        let deadline = Instant::now() + self.ready_within;
        let mut connection = self.connect(deadline).await?;
        if let Some(login) = &self.login {
            self.log_in(&mut connection, login, deadline).await?;
        }
        let handed_over = timeout(HANDED_OVER_WITHIN, connection.send(envelope, message)).await;
        outcome(Phase::Transaction, HANDED_OVER_WITHIN, handed_over)?;
        // Delivered; how the server says goodbye does not matter.
        let _ = timeout(LEAVE_WITHIN, connection.quit()).await;
        Ok(())
    }

    async fn connect(&self, deadline: Instant) -> Result<AsyncSmtpConnection, Failed> {
        let at_once = self.tls.clone().filter(|_| self.mode == Tls::Implicit);
        let address = (self.host.as_str(), self.port);
        let opening = AsyncSmtpConnection::connect_tokio1(address, None, &self.hello, at_once, None);
        let mut connection = self.step(Phase::Greeting, deadline, opening).await?;
        if let (Tls::StartTls, Some(tls)) = (self.mode, &self.tls) {
            if !connection.can_starttls() {
                leave(&mut connection).await;
                return Err((Phase::StartTls, Fault::NoStartTls));
            }
            self.step(Phase::StartTls, deadline, connection.starttls(tls.clone(), &self.hello)).await?;
        }
        Ok(connection)
    }

    async fn log_in(
        &self,
        connection: &mut AsyncSmtpConnection,
        login: &Login,
        deadline: Instant,
    ) -> Result<(), Failed> {
        if connection.server_info().get_auth_mechanism(DEFAULT_MECHANISMS).is_none() {
            leave(connection).await;
            return Err((Phase::Login, Fault::NoMechanism));
        }
        let password = login.password.load().map_err(|error| (Phase::Login, Fault::Secret(error.to_string())))?;
        let credentials = Credentials::new(login.username.clone(), password.expose().to_owned());
        let mut refused_ms = login.account.lock().await;
        if let Some(rest) = left_alone(*refused_ms, (self.now)()) {
            leave(connection).await;
            return Err((Phase::Login, Fault::LeftAlone(rest)));
        }
        let result = self.step(Phase::Login, deadline, connection.auth(DEFAULT_MECHANISMS, &credentials)).await;
        let refused = matches!(result, Err((_, Fault::Answer { code: 500.., .. })));
        *refused_ms = refused.then(|| (self.now)());
        result.map(drop)
    }

    /// Spares the server a connection that could not be used.
    async fn not_left_alone(&self) -> Result<(), Failed> {
        let Some(login) = &self.login else { return Ok(()) };
        let refused_ms = *login.account.lock().await;
        match left_alone(refused_ms, (self.now)()) {
            Some(rest) => Err((Phase::Login, Fault::LeftAlone(rest))),
            None => Ok(()),
        }
    }

    async fn step<T>(
        &self,
        phase: Phase,
        deadline: Instant,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failed> {
        outcome(phase, self.ready_within, timeout_at(deadline, work).await)
    }
}

fn outcome<T, E>(phase: Phase, limit: Duration, done: Result<Result<T, Error>, E>) -> Result<T, Failed> {
    let done = done.map_err(|_| (phase, Fault::Timeout(limit)))?;
    done.map_err(|error| (phase, Fault::from_smtp(&error)))
}

async fn leave(connection: &mut AsyncSmtpConnection) {
    // Nothing was delivered either way.
    let _ = timeout(LEAVE_WITHIN, connection.abort()).await;
}
