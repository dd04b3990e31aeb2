package smtp

import (
	"time"

	"fingerpost/mailer/oauth"
	"fingerpost/resolver/catalog"
)

// A Stage is how far an attempt got.
type Stage string

// The stages of an attempt, in their order.
const (
	StageDial     Stage = "dial"
	StageGreeting Stage = "greeting"
	StageTLS      Stage = "tls"
	StageEHLO     Stage = "ehlo"
	StageSTARTTLS Stage = "starttls"
	StageAuth     Stage = "auth"
	StageMail     Stage = "mail"
	StageRcpt     Stage = "rcpt"
	StageData     Stage = "data"
	StageBody     Stage = "body"
	StageEOD      Stage = "eod" // the reply to the final dot
)

// A Class says what to do after an attempt.
type Class uint8

// The classes.
const (
	Accepted  Class = iota // the server has accepted the mail
	Temporary              // try again
	Permanent              // do not try again
	BadConfig              // Permanent for all mail with this SMTP config, until it changes
	Uncertain              // the mail may have been accepted: try again with the same bytes, and mark it
)

// An Outcome is the result of an attempt. Its texts contain no credentials, and nothing that the server sent before it
// spoke SMTP.
type Outcome struct {
	Class    Class
	Stage    Stage            // where it ended
	Code     catalog.Code     // SMTP_…; "" for Accepted
	Message  string           // for people; the server's reply is in Reply
	Problems catalog.Problems // the fields of the SMTP config to change, may be empty
	SMTPCode int              // the server's reply code, 0 if none
	Enhanced string           // its enhanced status code such as "5.7.1", "" if none
	Reply    string           // its text, printable, at most 200 characters; "" before stage auth
	RetryIn  time.Duration    // the server's own hint, 0 if none
	Took     []Step           // the steps, in order
	// NoRecipient says that the server is definite about the recipient's address: there is none.
	NoRecipient bool
}

// A Step is one part of an attempt, for the SMTP test.
type Step struct {
	Name string // dns, connect, tls, token, auth or send
	Took time.Duration
}

// A Server is the destination of mail, with opened secrets. Equal values may share connections.
type Server struct {
	Host     string
	Port     int
	Username string // "" for no AUTH
	Password string
	Auth     string        // the only way to log in, see catalog.SMTPConfig; "": with the password
	OAuth    oauth.Account // for catalog.AuthXOAUTH2, which uses no password
	SSL      bool          // TLS from the first byte
	TLS      bool          // STARTTLS is required; if both are set, see mode
	CA       string        // PEM of the CAs to trust; "" for the system's
	EHLOName string        // host name to greet with; "" for that of the Transport
}

// An Envelope has the addresses of sender and recipient: bare ASCII.
type Envelope struct{ From, To string }
