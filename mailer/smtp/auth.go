package smtp

import (
	"encoding/base64"
	"errors"
	"net"
	"net/smtp"
	"slices"
	"strings"
)

// Refusals of this side, before it sends anything.
var (
	errNoSTARTTLS = errors.New("the server does not offer STARTTLS")
	errClearAuth  = errors.New("no credentials over a connection that is not secure")
	errNoAuth     = errors.New("the server offers no login that is known here")
	errTooLarge   = errors.New("the message is larger than the server takes")
)

// maxChallenges bounds the challenges during one AUTH.
const maxChallenges = 4

// mechanism chooses the login from what EHLO has offered, in upper case: Postfix answers 535 to a mechanism that it
// does not have, as it does to a wrong password. PLAIN comes first because all servers treat it the same.
//
// A Server with Auth is given no other way in: what it was told to do must not happen in a weaker way.
func mechanism(offered []string, server Server) (name string, err error) {
	for _, name := range []string{"PLAIN", "LOGIN", "CRAM-MD5", "XOAUTH2"} {
		wanted := strings.EqualFold(name, server.Auth) || server.Auth == "" && name != "XOAUTH2"
		if wanted && slices.Contains(offered, name) {
			return name, nil
		}
	}
	return "", errNoAuth
}

// authOf returns how to log in by a mechanism. token is for XOAUTH2.
func authOf(name string, server Server, token string) smtp.Auth {
	switch name {
	case "PLAIN":
		return smtp.PlainAuth("", server.Username, server.Password, server.Host)
	case "LOGIN":
		return &loginAuth{server.Username, server.Password}
	case "CRAM-MD5":
		return smtp.CRAMMD5Auth(server.Username, server.Password)
	}
	return xoauth2{server.Username, token}
}

// xoauth2 is AUTH XOAUTH2, which Google and Microsoft have described and no RFC has.
type xoauth2 struct{ user, token string }

func (a xoauth2) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "XOAUTH2", []byte("user=" + a.user + "\x01auth=Bearer " + a.token + "\x01\x01"), nil
}

// Next answers the challenge in which a server says why it refuses the token: the reply comes after an empty line.
func (a xoauth2) Next([]byte, bool) ([]byte, error) { return nil, nil }

// loginAuth is AUTH LOGIN, which net/smtp lacks and which is the only offer of some servers: the answers that are left.
// It answers by the order of the questions, because their texts differ from server to server.
type loginAuth []string

func (a *loginAuth) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (a *loginAuth) Next([]byte, bool) (answer []byte, err error) {
	if len(*a) == 0 {
		return nil, errNoReply
	}
	answer, *a = []byte((*a)[0]), (*a)[1:]
	return answer, nil
}

// login authenticates.
func (a *attempt) login(s *session) error {
	name, err := "", errClearAuth
	peer, tcp := s.wire.RemoteAddr().(*net.TCPAddr)
	if s.secure || tcp && peer.IP.IsLoopback() {
		name, err = mechanism(s.auth, a.server)
	}
	a.stage = StageAuth
	if err != nil {
		a.begin("auth")
		return err
	}
	if name == "XOAUTH2" {
		return a.loginByToken(s)
	}
	a.begin("auth")
	s.wire.within(a.limits.Command)
	return s.login(authOf(name, a.server, ""), a.server)
}

// loginByToken authenticates with an access token. One from memory that the server refuses is replaced once. A test asks
// for a token of its own: it is about the token server, too.
func (a *attempt) loginByToken(s *session) error {
	for last := false; ; last = true {
		a.begin("token")
		token, fresh, err := a.token()
		if err != nil {
			return err
		}
		s.token = token
		a.begin("auth")
		s.wire.within(a.limits.Command)
		err = s.login(authOf("XOAUTH2", a.server, token), a.server)
		if err == nil {
			return nil
		}
		a.tokens.Forget(a.server.OAuth, token) // the next may be better: what the account may do is in it
		if last || fresh || s.code != 535 || !s.inStep(err) {
			return err
		}
	}
}

// token returns an access token, and whether it is new.
func (a *attempt) token() (text string, fresh bool, err error) {
	if !a.alone {
		return a.tokens.Token(a.ctx, a.server.OAuth)
	}
	text, _, failure := a.tokens.Ask(a.ctx, a.server.OAuth)
	if failure != nil {
		return "", false, failure
	}
	return text, true, nil
}

// login authenticates. It uses neither go-smtp's Auth nor net/smtp's, because both go on talking to the server after a
// refusal.
func (s *session) login(auth smtp.Auth, server Server) error {
	// Without TLS net/smtp judges by the name of the host. attempt.login has judged the address already, so TLS is claimed.
	name, first, err := auth.Start(&smtp.ServerInfo{Name: server.Host, TLS: true, Auth: s.auth})
	if err != nil {
		return err
	}
	command := "AUTH " + name
	if first != nil {
		command += " " + base64.StdEncoding.EncodeToString(first)
	}
	err = s.command(command, 200, 399)
	for n := 0; n < maxChallenges && err == nil && s.code == 334; n++ {
		challenge, bad := base64.StdEncoding.DecodeString(string(s.text))
		answer, wrong := auth.Next(challenge, true)
		if bad != nil && name != "LOGIN" && name != "XOAUTH2" || wrong != nil { // some servers ask in clear text
			return errNoReply
		}
		err = s.command(base64.StdEncoding.EncodeToString(answer), 200, 399)
	}
	if err == nil && s.code != 235 { // also after one challenge too many
		return errNoReply
	}
	return err
}
