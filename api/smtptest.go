package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"fingerpost/mailer"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// smtpTestNames are the fields of a request that tests SMTP settings.
var smtpTestNames = []string{"host", "port", "username", "password", "fromEmail", "fromName", "replyTo", "toEmail", "sslEnabled", "tlsEnabled"}

// testSMTP answers POST /projects/smtp-config/test (mailer/README.md, Failures): it tries the settings that the caller gives,
// stores nothing of them and uses nothing stored. It concerns no project, so that a key that is bound to some may ask too.
func (s *Server) testSMTP(r *request) error {
	if err := r.permit(); err != nil {
		return err
	}
	f, err := readForm(r.ctx, smtpTestNames...)
	if err != nil {
		return err
	}
	t, err := f.smtpTest()
	if err != nil {
		return err
	}
	if s.mail == nil {
		return refuseMail
	}
	done, ok := s.waiting.beginTest()
	if !ok {
		r.ctx.Response.Header.SetCanonical(headerRetryAfter, []byte("5"))
		return refuseTests
	}
	defer done()
	f.body = nil
	r.dropBody()
	report, err := s.mail.TestSMTP(s.waiting.ctx, t)
	if err == nil {
		s.succeed(r.ctx, "connected, and a mail was sent", appendSMTPTest(nil, &report))
		return nil
	}
	if e, _ := visible(err); strings.HasPrefix(string(e.Code), smtpCodes) { // the settings are the caller's, and so is the failure
		s.failWith(r.ctx, string(r.ctx.URI().PathOriginal()), http.StatusBadRequest, e, appendFailedTest(nil, &report))
		return nil
	}
	return err
}

// smtpTest reads the settings and the recipient.
func (f *form) smtpTest() (t mailer.TestRequest, err error) {
	c := &t.Config
	f.require("host", "is required: the name or address of the SMTP server")
	f.require("fromEmail", "is required: the sender's address")
	f.fill([]catalog.Field{
		{Name: "host", Value: &c.Host}, {Name: "port", Value: &c.Port}, {Name: "username", Value: &c.Username},
		{Name: "password", Value: &t.Password}, {Name: "fromEmail", Value: &c.FromEmail}, {Name: "fromName", Value: &c.FromName},
		{Name: "replyTo", Value: &c.ReplyTo}, {Name: "toEmail", Value: &t.ToEmail},
		{Name: "sslEnabled", Value: &c.SSLEnabled}, {Name: "tlsEnabled", Value: &c.TLSEnabled},
	}, smtpTestNames...)
	f.recipient(t.ToEmail)
	if f.has("port") && !f.bad["port"] && c.Port == 0 {
		f.fail("port", "must be a number from 1 to 65535")
	}
	checked := *c
	if t.Password != "" {
		checked.Password = catalog.Secret{Source: catalog.SecretPlain, Ref: t.Password}
	}
	return t, f.validated(checked.Validate())
}

func appendFailedTest(dst []byte, report *mailer.TestReport) []byte {
	dst = strconv.AppendBool(append(dst, `{"connected":`...), report.Connected)
	dst = resolver.AppendString(append(dst, `,"toEmail":`...), report.ToEmail)
	dst = append(dst, `,"mailSent":false`...)
	dst = appendSteps(dst, report.Steps)
	if report.Reply != "" {
		dst = resolver.AppendString(append(dst, `,"serverReply":`...), report.Reply)
	}
	return append(dst, '}')
}

func appendSMTPTest(dst []byte, report *mailer.TestReport) []byte {
	dst = strconv.AppendBool(append(dst, `{"connected":`...), report.Connected)
	dst = resolver.AppendString(append(dst, `,"toEmail":`...), report.ToEmail)
	dst = strconv.AppendBool(append(dst, `,"mailSent":`...), report.MailSent)
	return append(appendSteps(dst, report.Steps), '}')
}

// appendSteps writes what was done, in order; the last one is what failed, where something did.
func appendSteps(dst []byte, steps []mailer.Step) []byte {
	dst = append(dst, `,"steps":[`...)
	for i, step := range steps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = resolver.AppendString(append(dst, `{"name":`...), step.Name)
		milliseconds := float64(step.Took.Round(time.Microsecond)) / float64(time.Millisecond)
		dst = strconv.AppendFloat(append(dst, `,"milliseconds":`...), milliseconds, 'f', -1, 64)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
