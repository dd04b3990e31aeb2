package mailer

import (
	"time"

	"fingerpost/resolver/catalog"
)

// A Stage is how far an attempt came (mailer/README.md, Failures).
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

// A Class says what follows from an attempt.
type Class uint8

// The classes of mailer/README.md, Failures.
const (
	Accepted  Class = iota // the server has taken the mail
	Temporary              // try again
	Permanent              // do not
	BadConfig              // Permanent, and so is all mail with this SMTP config until it changes
	Uncertain              // the mail may have been taken: try again with the same bytes, and say so
)

// An Outcome is what came of an attempt. Its texts carry no credentials, and nothing that a server said before it had
// spoken SMTP.
type Outcome struct {
	Class    Class
	Stage    Stage            // where it ended
	Code     catalog.Code     // SMTP_…, "" for Accepted
	Message  string           // for people; the server's reply is in Reply
	Problems catalog.Problems // the fields of the SMTP config to change, may be empty
	SMTPCode int              // the server's reply code, 0 if none
	Enhanced string           // its enhanced status code such as "5.7.1", "" if none
	Reply    string           // its text, printable, at most 200 characters; "" before stage auth
	RetryIn  time.Duration    // the server's own hint, 0 if none
	Took     []Step           // what was done, in order
}

// A Step is one part of an attempt, for the SMTP test.
type Step struct {
	Name string // dns, connect, tls, auth or send
	Took time.Duration
}

// A Server is where a project's mail is handed over, its secrets opened. Equal values may share connections.
type Server struct {
	Host     string
	Port     int
	Username string // "" for no AUTH
	Password string
	SSL      bool   // TLS from the first byte
	TLS      bool   // STARTTLS required; see mailer/README.md, SMTP settings, for both
	CA       string // PEM of the CAs to trust instead of the system's, "" for those
}

// An Envelope is who a mail is from and who it goes to: bare ASCII addresses.
type Envelope struct{ From, To string }
