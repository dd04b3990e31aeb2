package smtp

import (
	"encoding/base64"
	"errors"
	"net"
	"net/smtp"
	"slices"
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
func mechanism(offered []string, server Server) (smtp.Auth, error) {
	for _, m := range []struct {
		name string
		auth smtp.Auth
	}{
		{"PLAIN", smtp.PlainAuth("", server.Username, server.Password, server.Host)},
		{"LOGIN", &loginAuth{username: server.Username, password: server.Password}},
		{"CRAM-MD5", smtp.CRAMMD5Auth(server.Username, server.Password)},
	} {
		if slices.Contains(offered, m.name) {
			return m.auth, nil
		}
	}
	return nil, errNoAuth
}

// loginAuth is AUTH LOGIN, which net/smtp lacks and which is the only offer of some servers. It answers by the order of
// the questions, because their texts differ from server to server.
type loginAuth struct {
	username, password string
	asked              int
}

func (a *loginAuth) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (a *loginAuth) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	a.asked++
	switch a.asked {
	case 1:
		return []byte(a.username), nil
	case 2:
		return []byte(a.password), nil
	}
	return nil, errNoReply
}

// login authenticates. It uses neither go-smtp's Auth nor net/smtp's, because both go on talking to the server after a
// refusal.
func (s *session) login(server Server) error {
	if !s.secure && !loopback(s.wire.RemoteAddr()) {
		return errClearAuth
	}
	auth, err := mechanism(s.auth, server)
	if err != nil {
		return err
	}
	// Without TLS net/smtp judges by the name of the host. check has judged the address already, so TLS is claimed.
	name, first, err := auth.Start(&smtp.ServerInfo{Name: server.Host, TLS: true, Auth: s.auth})
	if err != nil {
		return err
	}
	words := []string{"AUTH ", name}
	if first != nil {
		words = append(words, " ", base64.StdEncoding.EncodeToString(first))
	}
	code, err := s.command(words...)
	for range maxChallenges {
		if err != nil || code != 334 {
			break
		}
		challenge, bad := base64.StdEncoding.DecodeString(string(s.text))
		answer, wrong := auth.Next(challenge, true)
		if bad != nil || wrong != nil {
			return errNoReply
		}
		code, err = s.command(base64.StdEncoding.EncodeToString(answer))
	}
	switch {
	case err != nil:
		return err
	case code == 235:
		return nil
	case code < 400: // also after one challenge too many
		return errNoReply
	}
	return s.refusal()
}

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
