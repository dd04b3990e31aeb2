package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strings"
	"syscall"

	"fingerpost/mailer/oauth"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/publicnet"
)

// The codes of failures.
const (
	CodeUnknownHost         catalog.Code = "SMTP_UNKNOWN_HOST"
	CodeDNSFailure          catalog.Code = "SMTP_DNS_FAILURE"
	CodeConnectionRefused   catalog.Code = "SMTP_CONNECTION_REFUSED"
	CodeConnectTimeout      catalog.Code = "SMTP_CONNECT_TIMEOUT" // also if there is no route to the host
	CodeAddressNotAllowed   catalog.Code = "SMTP_ADDRESS_NOT_ALLOWED"
	CodeGreetingTimeout     catalog.Code = "SMTP_GREETING_TIMEOUT"
	CodeConnectionClosed    catalog.Code = "SMTP_CONNECTION_CLOSED"
	CodeProtocolError       catalog.Code = "SMTP_PROTOCOL_ERROR"
	CodeServiceUnavailable  catalog.Code = "SMTP_SERVICE_UNAVAILABLE"
	CodeRejected            catalog.Code = "SMTP_REJECTED"
	CodeTLSNotSupported     catalog.Code = "SMTP_TLS_NOT_SUPPORTED"
	CodeTLSCertificate      catalog.Code = "SMTP_TLS_CERTIFICATE"
	CodeTLSHandshake        catalog.Code = "SMTP_TLS_HANDSHAKE"
	CodeSTARTTLSUnavailable catalog.Code = "SMTP_STARTTLS_UNAVAILABLE"
	CodeHELORefused         catalog.Code = "SMTP_HELO_REFUSED"
	CodeTLSRequired         catalog.Code = "SMTP_TLS_REQUIRED"
	CodeAuthUnsupported     catalog.Code = "SMTP_AUTH_UNSUPPORTED"
	CodeAuthFailed          catalog.Code = "SMTP_AUTH_FAILED"
	CodeAuthTemporary       catalog.Code = "SMTP_AUTH_TEMPORARY"
	CodeAuthRequired        catalog.Code = "SMTP_AUTH_REQUIRED"
	CodeSenderRejected      catalog.Code = "SMTP_SENDER_REJECTED"
	CodeMessageTooLarge     catalog.Code = "SMTP_MESSAGE_TOO_LARGE"
	CodeRecipientRejected   catalog.Code = "SMTP_RECIPIENT_REJECTED"
	CodeRelayDenied         catalog.Code = "SMTP_RELAY_DENIED"
	CodeTemporary           catalog.Code = "SMTP_TEMPORARY"
	CodeMessageRejected     catalog.Code = "SMTP_MESSAGE_REJECTED"
	CodeConnectionLost      catalog.Code = "SMTP_CONNECTION_LOST"
	CodeOutcomeUnknown      catalog.Code = "SMTP_OUTCOME_UNKNOWN"
)

// classify turns an error into an outcome, by the stage and by the error's Go type or the server's reply code. The
// exceptions are namesRelay and namesHELO.
func (a *attempt) classify(err error) Outcome {
	var refusal *textproto.Error
	var token *oauth.Error
	switch {
	case errors.Is(err, errClosed):
		return a.end(Temporary, catalog.CodeUnavailable, "The service is shutting down.")
	case errors.Is(err, errNoAddress):
		return a.badAddress()
	case errors.As(err, &refusal):
		return a.classifyReply(refusal)
	case errors.As(err, &token):
		return a.classifyToken(token)
	case errors.Is(err, errFlood):
		out := a.end(Permanent, CodeProtocolError, "The server says more than any reply needs.")
		out.Problems.Addf("host", "is a server that floods its clients")
		return a.afterDot(out)
	case errors.As(err, new(textproto.ProtocolError)):
		out := a.end(Permanent, CodeProtocolError, "What answers at %s does not speak SMTP.", a.where())
		out.Problems.Addf("port",
			"leads to something that does not speak SMTP: submission is usually on 587, or 465 with sslEnabled")
		return a.afterDot(out)
	}
	switch a.stage {
	case StageDial:
		return a.classifyDial(err)
	case StageGreeting, StageEHLO:
		if isAlert(err) { // a TLS 1.3 server refuses a client only after the handshake
			return a.classifyTLS(err)
		}
	case StageTLS, StageSTARTTLS:
		return a.classifyTLS(err)
	}
	return a.classifyLost(err)
}

func (a *attempt) end(class Class, code catalog.Code, format string, args ...any) Outcome {
	return Outcome{Class: class, Stage: a.stage, Code: code, Message: fmt.Sprintf(format, args...)}
}

// afterDot makes an outcome uncertain if the server had the whole mail before the failure.
func (a *attempt) afterDot(out Outcome) Outcome {
	if a.stage == StageEOD {
		out.Class = Uncertain
	}
	return out
}

func (a *attempt) where() string { return fmt.Sprintf("%s:%d", a.server.Host, a.server.port()) }

func (a *attempt) badAddress() Outcome {
	if a.stage == StageRcpt {
		out := a.end(Permanent, CodeRecipientRejected, "The recipient's address cannot be used.")
		out.Problems.Addf("toEmail", "must be one bare address such as hello@acme.example")
		return out
	}
	out := a.end(BadConfig, CodeSenderRejected, "The sender's address cannot be used.")
	out.Problems.Addf("fromEmail", "must be one bare address such as hello@acme.example")
	return out
}

func (a *attempt) classifyDial(err error) (out Outcome) {
	var dns *net.DNSError
	switch {
	case a.begun.IsZero(): // it waited for a connection
		out = a.end(Temporary, CodeConnectTimeout, "No connection to %s was free in time.", a.where())
	case errors.Is(err, publicnet.ErrNotAllowed):
		out = a.end(Permanent, CodeAddressNotAllowed, "The address of %s is not one that mail may be sent to.", a.server.Host)
		out.Problems.Addf("host",
			"has a private, local or reserved address; whoever runs the service can allow its network with --smtp-allow")
	case errors.As(err, &dns) && dns.IsNotFound:
		out = a.end(Temporary, CodeUnknownHost, "Unknown host: %s", a.server.Host)
		out.Problems.Addf("host", "UnknownHostException: %s", a.server.Host)
	case errors.As(err, &dns):
		out = a.end(Temporary, CodeDNSFailure, "The name servers cannot be asked about %s at the moment.", a.server.Host)
		out.Problems.Addf("host", "could not be looked up; that may pass")
	case errors.Is(err, syscall.ECONNREFUSED):
		out = a.end(Temporary, CodeConnectionRefused, "%s refuses connections.", a.where())
		out.Problems.Addf("port", "nothing listens there: submission is usually on 587, or 465 with sslEnabled")
	case isReset(err): // accepted, and closed before it could be used
		return a.closedAtOnce()
	case a.ctx.Err() != nil || isTimeout(err):
		out = a.end(Temporary, CodeConnectTimeout, "%s did not answer in time.", a.where())
		out.Problems.Addf("host", "does not answer: check the name, and whether a firewall lets port %d out", a.server.port())
	default:
		out = a.end(Temporary, CodeConnectTimeout, "%s cannot be reached.", a.where())
		out.Problems.Addf("host", "cannot be reached from here")
	}
	return out
}

func (a *attempt) closedAtOnce() Outcome {
	out := a.end(Temporary, CodeConnectionClosed, "%s closes connections without a greeting.", a.where())
	out.Problems.Addf("port", "the server there closes connections without a word")
	return out
}

// classifyTLS classifies failed handshakes. classifyReply judges the reply to STARTTLS.
func (a *attempt) classifyTLS(err error) (out Outcome) {
	var (
		certificate *tls.CertificateVerificationError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, errNoSTARTTLS):
		out = a.end(Permanent, CodeSTARTTLSUnavailable, "The server does not offer STARTTLS.")
		out.Problems.Addf("tlsEnabled",
			"asks for STARTTLS, which the server does not offer: use another port, or sslEnabled on 465")
	case errors.As(err, &certificate):
		reason, why := "UNKNOWN_AUTHORITY", "is signed by nobody who is trusted here; a private CA goes into ca_file"
		switch {
		case errors.As(err, &name):
			reason, why = "HOSTNAME_MISMATCH", "is for another name: use the name that the certificate has"
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
			reason, why = "EXPIRED", "has expired or is not valid yet: the server needs a new one"
		case errors.As(err, &invalid):
			reason, why = "INVALID", "is not fit for a server"
		}
		out = a.end(Permanent, CodeTLSCertificate, "The server's certificate is not good for %s (%s).", a.server.Host, reason)
		out.Problems.Addf("host", "%s: the certificate %s", reason, why)
	case errors.As(err, &record) && a.stage == StageTLS:
		out = a.end(Permanent, CodeTLSNotSupported, "The server does not speak TLS on port %d.", a.server.port())
		out.Problems.Addf("sslEnabled",
			"needs a port that speaks TLS from the first byte, usually 465; here, use tlsEnabled (STARTTLS)")
	case a.ctx.Err() != nil || isTimeout(err) || isClosed(err):
		out = a.end(Temporary, CodeTLSHandshake, "The server broke the TLS handshake off, or did not answer in time.")
		out.Problems.Addf("tlsEnabled", "the TLS handshake was not finished; that may pass")
	default:
		out = a.end(Permanent, CodeTLSHandshake, "No TLS connection can be agreed on with the server.")
		out.Problems.Addf("tlsEnabled", "the TLS handshake failed: the server must speak TLS 1.2 or 1.3")
	}
	return out
}

// classifyLost classifies connections that end or go silent, and refusals of this side.
func (a *attempt) classifyLost(err error) (out Outcome) {
	late := a.ctx.Err() != nil || isTimeout(err)
	switch {
	case errors.Is(err, errClearAuth):
		out = a.end(Permanent, CodeTLSRequired, "Credentials are not sent over a connection that is not secure.")
		out.Problems.Addf("tlsEnabled", "must be true (STARTTLS), or sslEnabled, where there is a username")
	case errors.Is(err, errNoAuth) && a.server.Auth != "":
		out = a.end(Permanent, CodeAuthUnsupported, "The server does not offer the login %s.", strings.ToUpper(a.server.Auth))
		out.Problems.Addf("auth", "names a login that the server does not offer on this connection")
	case errors.Is(err, errNoAuth):
		out = a.end(Permanent, CodeAuthUnsupported, "The server offers no login that is known here (PLAIN, LOGIN, CRAM-MD5).")
		out.Problems.Addf("username",
			"cannot be used: the server offers no login by PLAIN, LOGIN or CRAM-MD5 on this connection")
	case errors.Is(err, errTooLarge):
		out = a.end(Permanent, CodeMessageTooLarge, "The message has %d bytes; the server takes %d.", len(a.message),
			a.session.maxSize)
	case a.stage == StageGreeting && late:
		out = a.end(Temporary, CodeGreetingTimeout, "%s accepts connections and says nothing.", a.where())
		hint := "the server sends no greeting; if it is one for TLS from the first byte (usually port 465), enable sslEnabled"
		if a.server.port() == 465 && a.server.mode() != tlsImplicit {
			hint = "enable sslEnabled: port 465 speaks TLS from the first byte"
		}
		out.Problems.Addf("sslEnabled", "%s", hint)
	case a.stage == StageGreeting:
		return a.closedAtOnce()
	case a.stage == StageEOD && (late || !isReset(err)):
		out = a.end(Uncertain, CodeOutcomeUnknown, "The server had the whole message and did not say whether it takes it.")
	case a.stage == StageEOD:
		out = a.end(Uncertain, CodeConnectionLost,
			"The connection broke while the server had to say whether it takes the message.")
	case late:
		out = a.end(Temporary, CodeConnectionLost, "The server did not answer in time at %s.",
			strings.ToUpper(string(a.stage)))
	default:
		out = a.end(Temporary, CodeConnectionLost, "The connection broke at %s.", strings.ToUpper(string(a.stage)))
	}
	return out
}

// classifyToken classifies what a token server has refused, or not done.
func (a *attempt) classifyToken(err *oauth.Error) Outcome {
	var out Outcome
	switch {
	case err.Temporary:
		out = a.end(Temporary, CodeAuthTemporary, "There is no access token at the moment: the token server %s.", err.Reason)
		out.Problems.Addf("oauthTokenUrl", "the token server there %s", err.Reason)
	case err.Code == "":
		out = a.end(BadConfig, CodeAuthFailed, "Authentication failed: the token server %s", err.Reason)
		out.Problems.Addf("oauthTokenUrl", "the token server there %s", err.Reason)
	default:
		_, code := a.clean(err.Code)
		out = a.end(BadConfig, CodeAuthFailed, "Authentication failed: the token server refuses with %s", code)
		for _, field := range tokenFields(err.Code) {
			out.Problems.Addf(field, "%s", advice[field])
		}
	}
	_, out.Reply = a.clean(err.Description)
	return out
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err,
		&timeout) && timeout.Timeout()
}

// isClosed reports whether the other side has closed the connection.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// isAlert reports whether the other side has sent a TLS alert. Package tls exports the error's type only for QUIC, but
// its Op names the sender.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
