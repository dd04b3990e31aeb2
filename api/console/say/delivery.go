package say

import (
	"fmt"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A Reason is why a mail does not arrive.
type Reason struct {
	Why   string // a clause: "the connection broke"
	Do    string // a sentence; "" if waiting is all
	Field string // of the SMTP config to change; "" for none
}

// Reasons has a Reason for each code.
var Reasons = map[string]Reason{
	"SMTP_UNKNOWN_HOST": {"the mail server's host name does not exist", "Correct the host.", "host"},
	"SMTP_DNS_FAILURE": {"the mail server's name cannot be looked up",
		"Check the host, and the DNS of this machine.", "host"},
	"SMTP_CONNECTION_REFUSED": {"the mail server refuses the connection", "Check host and port.", "port"},
	"SMTP_CONNECT_TIMEOUT": {"the mail server does not answer",
		"Check host and port, and firewalls between.", "host"},
	"SMTP_ADDRESS_NOT_ALLOWED": {"the mail server's address is not allowed",
		"Use a public server, or start the service with --smtp-allow.", "host"},
	"SMTP_GREETING_TIMEOUT": {"the mail server is silent",
		"Often the port expects TLS from the start: change sslEnabled or the port.", "sslEnabled"},
	"SMTP_CONNECTION_CLOSED":   {"the mail server closes the connection", "Check the port.", "port"},
	"SMTP_PROTOCOL_ERROR":      {"what answers is not a mail server", "Correct host and port.", "port"},
	"SMTP_SERVICE_UNAVAILABLE": {"the mail server is not available", "", "host"},
	"SMTP_REJECTED":            {"the mail server turns this service away", "Ask its operator.", "host"},
	"SMTP_TLS_NOT_SUPPORTED": {"the port does not speak TLS",
		"Switch sslEnabled off; tlsEnabled upgrades the connection.", "sslEnabled"},
	"SMTP_TLS_CERTIFICATE": {"the mail server's certificate is not trusted",
		"Use the host name that the certificate is for, or renew it.", "host"},
	"SMTP_TLS_HANDSHAKE": {"TLS with the mail server fails", "Its TLS may be too old.", "tlsEnabled"},
	"SMTP_STARTTLS_UNAVAILABLE": {"the mail server offers no TLS", "Use a port with TLS, or switch tlsEnabled off.",
		"tlsEnabled"},
	"SMTP_HELO_REFUSED": {"the mail server refuses the name that this service greets with",
		"Enter a host name that its operator accepts.", "ehloName"},
	"SMTP_TLS_REQUIRED": {"a password is not sent without TLS", "Switch tlsEnabled on.", "tlsEnabled"},
	"SMTP_AUTH_UNSUPPORTED": {"the mail server offers no way to sign in",
		"Use its port for submission, or leave out the username.", "username"},
	"SMTP_AUTH_FAILED": {"the username or the password is refused",
		"Enter username and password again, or what a login by tokens needs.",
		"username"},
	"SMTP_AUTH_TEMPORARY": {"the mail server cannot check username and password now", "", ""},
	"SMTP_AUTH_REQUIRED":  {"the mail server wants a username", "Enter username and password.", "username"},
	"SMTP_SENDER_REJECTED": {"the sender's address is refused",
		"Use an address that the account may send from.", "fromEmail"},
	"SMTP_MESSAGE_TOO_LARGE":  {"the mail is too large for the mail server", "Make the mail smaller.", ""},
	"SMTP_RECIPIENT_REJECTED": {"the recipient's address is refused", "Check the address with the recipient.", ""},
	"SMTP_RELAY_DENIED": {"the account may not send to this address",
		"Sign in with an account that may send to others.", "username"},
	"SMTP_TEMPORARY": {"the mail server asks to try again later", "", ""},
	"SMTP_MESSAGE_REJECTED": {"the text of the mail is refused",
		"Often taken for spam: what the server said tells more.", ""},
	"SMTP_CONNECTION_LOST": {"the connection broke", "", ""},
	"SMTP_OUTCOME_UNKNOWN": {"the mail server did not confirm the mail", "", ""},
	"SMTP_NOT_CONFIGURED":  {"the project has no mail server", "Add an SMTP config, or switch it on.", "host"},
	"PROJECT_SUSPENDED":    {"the project is suspended", "Set its status to ACTIVE.", ""},
	"NOT_FOUND":            {"the project was deleted", "", ""},
	"SUPPRESSED": {"the suppression list has the address",
		"Remove it from the list if the recipient wants mail again.", ""},
	"UNAVAILABLE": {"a secret of the SMTP config cannot be opened",
		"Enter the password again, or give the service the secret.", "password"},
}

// ReasonOf returns the reason for a code.
func ReasonOf(code string) Reason {
	if r, known := Reasons[code]; known {
		return r
	}
	return Reason{Why: "it failed with " + code}
}

// A State is where a mail is. Kind is good, warn or bad.
type State struct{ Kind, Text string }

// StateOf returns the state of a mail.
func StateOf(m *client.MailEntry, now time.Time) State {
	why := ""
	if m.ErrorCode != nil {
		why = ": " + ReasonOf(*m.ErrorCode).Why
	}
	switch status := catalog.MailStatus(m.Status); {
	case status == catalog.MailSent && m.ProviderType == catalog.ProviderSink:
		return State{"warn", "Kept, not sent"}
	case status == catalog.MailSent:
		return State{"good", "Sent"}
	case status == catalog.MailFailed:
		return State{"bad", "Not sent" + why}
	case status == catalog.MailExpired:
		return State{"bad", "Given up" + why}
	case status == catalog.MailSuppressed:
		return State{"warn", "Not sent" + why}
	case m.WaitingFor != nil && why == "":
		return State{"bad", "Stopped: waits for " + *m.WaitingFor}
	case m.WaitingFor != nil:
		return State{"bad", "Stopped" + why}
	case m.NextAttemptAt == nil:
		return State{"warn", "Being sent"}
	}
	next, err := catalog.ParseMoment(*m.NextAttemptAt)
	if left := next.Sub(now); err == nil && left > 0 {
		return State{"warn", "Waiting: next try in " + catalog.Span(left.Round(time.Second))}
	}
	return State{"warn", "Waiting: next try now"}
}

// stages say how far an attempt got.
var stages = map[string]string{
	"dial": "connecting", "greeting": "waiting for the server's greeting", "tls": "starting TLS",
	"ehlo": "saying hello", "starttls": "starting TLS", "auth": "signing in", "mail": "naming the sender",
	"rcpt": "naming the recipient", "data": "beginning the mail", "body": "sending the mail",
	"eod": "waiting for the server to take the mail",
}

// A Step is a line of a mail's time line.
type Step struct {
	At, Kind, Title string
	Said            string // by the server, or what happened in more words
	Do              string // what to do
	Code            string // behind the words
}

// Steps returns the time line of a mail, the first step first.
func Steps(m *client.MailEntry, now time.Time) []Step {
	steps := []Step{{At: m.CreatedAt, Title: "Asked for by " + m.ServiceName}}
	last := 0
	for _, a := range m.History {
		if gap := a.Attempt - last - 1; gap > 0 {
			steps = append(steps, Step{Title: fmt.Sprintf("%d more attempts, of which nothing is kept", gap)})
		}
		last = a.Attempt
		s := Step{At: a.At, Kind: "good", Title: fmt.Sprintf("Attempt %d: the server took the mail", a.Attempt),
			Said: orEmpty(a.Message)}
		if m.ProviderType == catalog.ProviderSink && a.ErrorCode == nil {
			s.Kind, s.Title = "warn", fmt.Sprintf("Attempt %d: the mail was kept instead of being sent", a.Attempt)
		}
		if a.ErrorCode != nil {
			r := ReasonOf(*a.ErrorCode)
			s.Kind, s.Do, s.Code = "bad", r.Do, *a.ErrorCode
			s.Title = fmt.Sprintf("Attempt %d, %s: %s", a.Attempt, stages[orEmpty(a.Stage)], r.Why)
		}
		if a.SMTPCode != nil {
			s.Code = fmt.Sprintf("%s %d", s.Code, *a.SMTPCode)
		}
		steps = append(steps, s)
	}
	ended := m.Status == string(catalog.MailSent) || m.Status == string(catalog.MailFailed)
	if state := StateOf(m, now); len(m.History) == 0 || !ended {
		end := Step{Kind: state.Kind, Title: state.Text}
		if m.SentAt != nil {
			end.At = *m.SentAt
		}
		if len(m.History) == 0 && m.ErrorCode != nil {
			end.Said, end.Do, end.Code = orEmpty(m.ErrorMessage), ReasonOf(*m.ErrorCode).Do, *m.ErrorCode
		}
		steps = append(steps, end)
	}
	return steps
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
