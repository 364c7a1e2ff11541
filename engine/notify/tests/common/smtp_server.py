"""A real SMTP server (aiosmtpd) for the tests. Settings come as JSON in argv[1]; what happens goes to stdout, a JSON
object a line, the first of which tells the port."""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

settings = json.loads(sys.argv[1])


def secured(server):
    return server.transport.get_extra_info("ssl_object") is not None


def say(**event):
    print(json.dumps(event), flush=True)


class Handler:
    def __init__(self):
        self.rcpt = {address: list(answers) for address, answers in settings.get("rcpt", {}).items()}
        self.data = list(settings.get("data", []))

    async def handle_MAIL(self, server, session, envelope, address, options):
        say(mail_from=address)
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        answers = self.rcpt.get(address)
        if answers:
            return answers.pop(0) if len(answers) > 1 else answers[0]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        raw = envelope.original_content
        if b"\n" in raw.replace(b"\r\n", b"") or b"\r" in raw.replace(b"\r\n", b""):
            return "550 5.6.11 bare LF or CR"
        if self.data:
            answer = self.data.pop(0)
            if not answer.startswith("250"):
                return answer
        say(message=raw.decode("utf-8"), to=envelope.rcpt_tos, tls=secured(server),
            user=(session.auth_data or {}).get("user"))
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    user, password = data.login.decode(), data.password.decode()
    good = settings.get("login") == [user, password]
    say(login=mechanism, good=good, tls=secured(server))
    if good:
        return AuthResult(success=True, auth_data={"user": user})
    return AuthResult(success=False, handled=False)


def context():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(settings["cert"], settings["key"])
    return tls


async def main():
    mode, handler = settings.get("tls", "none"), Handler()

    def factory():
        say(connected=True)
        return SMTP(
            handler,
            hostname="mx.test",
            tls_context=context() if mode == "starttls" else None,
            require_starttls=settings.get("require_starttls", False),
            authenticator=authenticate,
            auth_require_tls=settings.get("auth_require_tls", False),
            auth_required=settings.get("login") is not None,
            auth_exclude_mechanism=settings.get("exclude", []),
            enable_SMTPUTF8=False,
        )

    server = await asyncio.get_running_loop().create_server(
        factory, "127.0.0.1", 0, ssl=context() if mode == "implicit" else None)
    say(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
