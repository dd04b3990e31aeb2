package smtp

import (
	"net/textproto"
	"slices"
	"strings"

	"fingerpost/resolver/catalog"
)

// A verdict is the consequence of a reply. This file is the table of SMTP replies.
type verdict struct {
	class   Class
	code    catalog.Code
	message string
	fields  []string // of the SMTP config, see advice
}

// The verdicts of more than one row.
var (
	authRequired = verdict{BadConfig, CodeAuthRequired, "The server wants a login, and there is no username.",
		[]string{"username"}}
	tooLarge    = verdict{Permanent, CodeMessageTooLarge, "The message is larger than the server takes.", nil}
	rejected    = verdict{Permanent, CodeMessageRejected, "The server refuses the message.", nil}
	temporary   = verdict{Temporary, CodeTemporary, "The server does not take the mail at the moment.", nil}
	relayDenied = verdict{BadConfig, CodeRelayDenied, "The server does not pass mail on for this account.",
		[]string{"username"}}
	heloRefused = verdict{BadConfig, CodeHELORefused, "The server refuses the name that this service greets with.",
		[]string{"ehloName"}}
	protocol = verdict{Permanent, CodeProtocolError, "The server does not know a command that every SMTP server has.",
		[]string{"host"}}
)

// advice says for each field what may be wrong with it.
var advice = map[string]string{ //nolint:gosec // texts for people, no credentials
	"host":       "the server there refuses to serve",
	"tlsEnabled": "the server does not do STARTTLS at the moment, or not at all",
	"username":   "is not what the server wants: it must be that of an account that may send mail to others",
	"password":   "may be wrong",
	"fromEmail":  "is not an address that the server lets this account send from",
	"toEmail":    "the server does not take mail for this address",
	"ehloName": "is not a name that the server takes: set ehlo_name in smtp_config, or --mail-ehlo, to a host name that " +
		"DNS knows",
	"auth": "Microsoft 365 has ended the login with username and password (Basic authentication): set auth to xoauth2, " +
		"with the token server, client id, client secret and scope of an application that may send mail (SMTP.SendAsApp)",
	"oauthTokenUrl":     "may not be the token endpoint of the account",
	"oauthClientId":     "may be wrong, or not allowed to have tokens",
	"oauthClientSecret": "may be wrong, or have expired",
	"oauthScope": "may not be one for SMTP at this server; that of Microsoft 365 is " +
		"https://outlook.office365.com/.default",
}

// endOfBasic are the enhanced codes with which Microsoft 365 refuses a password, whatever it is.
var endOfBasic = []string{"5.7.139", "5.7.30"}

// tokenFields lists the fields that an error of a token server is about (RFC 6749 5.2).
func tokenFields(code string) []string {
	switch code {
	case "invalid_client", "unauthorized_client":
		return []string{"oauthClientId", "oauthClientSecret"}
	case "invalid_scope", "invalid_target", "invalid_resource":
		return []string{"oauthScope"}
	}
	return []string{"oauthTokenUrl", "oauthScope"}
}

// advice returns the text for a field, more exact if the code allows it.
func (v verdict) advice(field string) string {
	switch {
	case field == "username" && slices.Contains(v.fields, "oauthScope"):
		return "must be the mailbox or account that the application may send mail for"
	case field == "username" && v.code == CodeAuthFailed:
		return "may be wrong, or not one that this password is for"
	case field == "username" && v.code == CodeAuthRequired:
		return "is needed, with its password: the server takes no mail without a login"
	}
	return advice[field]
}

// aboutRecipient reports whether an enhanced code is about the recipient's address (RFC 3463 3.2) or mailbox (3.3).
func aboutRecipient(enhanced string) bool {
	return strings.HasPrefix(enhanced, "5.1.") || strings.HasPrefix(enhanced, "5.2.")
}

// namesRelay distinguishes refused relaying from a refused recipient by the reply's text, if the enhanced code does
// not: Exim sends none, others send 5.0.0 or a 5.7.x of their own. Only here, in namesHELO and in noRecipient does the text
// decide, because nothing else differs.
func namesRelay(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.ContainsFunc(words, func(w string) bool { return w == "relay" || w == "relaying" })
}

// namesHELO recognises a refusal of the name in EHLO that comes late: Postfix gives it as the reply to RCPT
// (smtpd_delay_reject), with "Helo command rejected" and a code that it also has for other reasons.
func namesHELO(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.ContainsFunc(words, func(w string) bool { return w == "helo" || w == "ehlo" })
}

// noRecipientCodes are the enhanced codes that say that there is no such recipient, and none that comes and goes: a bad
// mailbox, a bad domain, a bad syntax, a mailbox that has moved without a new address, a domain that takes no mail
// (RFC 3463 3.2, RFC 7505). Not among them are full and disabled mailboxes (5.2.x), ambiguous ones (5.1.4) and policy (5.7.x).
var noRecipientCodes = []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"}

// noRecipientTexts are what servers without enhanced codes say of one. It is the third case in which the text decides.
var noRecipientTexts = []string{"user unknown", "no such user", "does not exist"}

// noRecipient reports whether a refusal is definite about the recipient's address. verdict is the code that the table
// gives it: what it takes for relaying, a login or the name in EHLO is about something else.
func (a *attempt) noRecipient(verdict catalog.Code, code int, enhanced, text string) bool {
	atRcpt := a.stage == StageRcpt && verdict == CodeRecipientRejected
	atDot := a.stage == StageEOD && verdict == CodeMessageRejected
	switch {
	case code < 500 || !atRcpt && !atDot:
		return false
	case enhanced != "":
		return slices.Contains(noRecipientCodes, enhanced)
	}
	text = strings.ToLower(text)
	return atRcpt && code == 550 &&
		slices.ContainsFunc(noRecipientTexts, func(said string) bool { return strings.Contains(text, said) })
}

// classifyReply judges a negative reply by its code and, where the table says so, its enhanced code or text.
func (a *attempt) classifyReply(refusal *textproto.Error) Outcome {
	enhanced, text := a.clean(refusal.Msg)
	v := a.verdict(refusal.Code, enhanced)
	if a.stage == StageRcpt && v.code == CodeRecipientRejected && !aboutRecipient(enhanced) &&
		namesRelay(refusal.Msg) { // the whole of it: text may be cut or withheld
		v = relayDenied
	}
	if late := a.stage == StageMail || a.stage == StageRcpt; late && refusal.Code >= 500 && namesHELO(refusal.Msg) {
		v = heloRefused
	}
	out := a.end(v.class, v.code, "%s", v.message)
	if v.code == CodeAuthFailed { // a fixed text, because forms search it
		what := "username or password"
		if a.server.Auth == catalog.AuthXOAUTH2 {
			what = "access token"
		}
		out = a.end(v.class, v.code, "Authentication failed: the SMTP server rejected the %s (%d)", what, refusal.Code)
	}
	for _, field := range v.fields {
		out.Problems.Addf(field, "%s", v.advice(field))
	}
	if v.code == CodeAuthRequired && a.session.startTLS && !a.session.secure {
		out.Problems.Addf("tlsEnabled", "the server offers STARTTLS, and may want that first")
	}
	out.SMTPCode, out.Enhanced = refusal.Code, enhanced
	if !slices.Contains([]Stage{StageGreeting, StageEHLO, StageSTARTTLS}, a.stage) {
		out.Reply = text
	}
	out.NoRecipient = a.noRecipient(v.code, refusal.Code, enhanced, refusal.Msg)
	if refusal.Code < 500 {
		out.RetryIn = retryHint(refusal.Msg)
	}
	return out
}

func (a *attempt) verdict(code int, enhanced string) verdict {
	anonymous := a.server.Username == "" && (code == 530 || code >= 500 && strings.HasPrefix(enhanced, "5.7."))
	unknown := code == 500 || code == 502 || code == 503 || code == 504 || code == 555
	switch a.stage {
	case StageGreeting, StageEHLO:
		if code < 500 {
			return verdict{Temporary, CodeServiceUnavailable, "The server is not available at the moment.", []string{"host"}}
		}
		if a.stage == StageEHLO && (code == 501 || code == 504 || code == 550) {
			return heloRefused
		}
		return verdict{Permanent, CodeRejected, "The server refuses to talk to this service.", []string{"host"}}
	case StageSTARTTLS:
		if code < 500 {
			return verdict{Temporary, CodeTLSHandshake, "The server cannot do TLS at the moment.", []string{"tlsEnabled"}}
		}
		return verdict{Permanent, CodeSTARTTLSUnavailable, "The server refuses STARTTLS.", []string{"tlsEnabled"}}
	case StageAuth:
		switch {
		case code < 500:
			return verdict{Temporary, CodeAuthTemporary, "The server cannot check the login at the moment.", nil}
		case unknown:
			return verdict{Permanent, CodeAuthUnsupported, "The server does not do the login that it offers.",
				[]string{"username"}}
		}
		v := verdict{class: BadConfig, code: CodeAuthFailed, fields: []string{"username", "password"}}
		switch {
		case a.server.Auth == catalog.AuthXOAUTH2:
			v.fields = []string{"username", "oauthScope"}
		case slices.Contains(endOfBasic, enhanced):
			v.fields = []string{"auth"}
		}
		return v
	case StageMail:
		switch {
		case code < 500:
			return temporary
		case anonymous:
			return authRequired
		case code == 552:
			return tooLarge
		case unknown:
			return protocol
		}
		return verdict{BadConfig, CodeSenderRejected, "The server refuses the sender.", []string{"fromEmail"}}
	case StageRcpt:
		switch {
		case code < 500:
			return temporary
		case anonymous:
			return authRequired
		case enhanced == "5.7.1":
			return relayDenied
		case unknown:
			return protocol
		}
		return verdict{Permanent, CodeRecipientRejected, "The server refuses the recipient.", []string{"toEmail"}}
	}
	switch { // DATA and the final dot
	case code < 500:
		return temporary
	// otherwise it is about the mailbox or the content
	case code == 552 && slices.Contains([]string{"", "5.3.4", "5.2.3"}, enhanced):
		return tooLarge
	}
	return rejected
}
