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
	offers := func(name string) bool { return slices.Contains(offered, name) }
	switch {
	case offers("PLAIN"):
		return smtp.PlainAuth("", server.Username, server.Password, server.Host), nil
	case offers("LOGIN"):
		return &loginAuth{server.Username, server.Password}, nil
	case offers("CRAM-MD5"):
		return smtp.CRAMMD5Auth(server.Username, server.Password), nil
	}
	return nil, errNoAuth
}

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

// login authenticates. It uses neither go-smtp's Auth nor net/smtp's, because both go on talking to the server after a
// refusal.
func (s *session) login(server Server) error {
	if peer, ok := s.wire.RemoteAddr().(*net.TCPAddr); !s.secure && !(ok && peer.IP.IsLoopback()) {
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
	command := "AUTH " + name
	if first != nil {
		command += " " + base64.StdEncoding.EncodeToString(first)
	}
	err = s.command(command, 200, 399)
	for n := 0; n < maxChallenges && err == nil && s.code == 334; n++ {
		challenge, bad := base64.StdEncoding.DecodeString(string(s.text))
		answer, wrong := auth.Next(challenge, true)
		if bad != nil && name != "LOGIN" || wrong != nil { // some servers ask for LOGIN's answers in clear text
			return errNoReply
		}
		err = s.command(base64.StdEncoding.EncodeToString(answer), 200, 399)
	}
	if err == nil && s.code != 235 { // also after one challenge too many
		return errNoReply
	}
	return err
}
