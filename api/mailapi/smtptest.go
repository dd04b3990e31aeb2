package mailapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"fingerpost/api/web"
	"fingerpost/mailer"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
)

// smtpTestNames are the fields of a test of SMTP settings.
var smtpTestNames = append(slices.DeleteFunc(catalog.RequestNames(new(catalog.SMTPConfig).Fields()),
	func(name string) bool { return name == "active" }), "toEmail")

// testSMTP answers POST /projects/smtp-config/test. It tries the settings of the body, stores none of them and uses
// nothing stored. It concerns no project, so a key that is bound to some projects may call it.
func (a *API) testSMTP(r *web.Request) error {
	if err := r.Permit(); err != nil {
		return err
	}
	f, err := readForm(r, smtpTestNames)
	if err != nil {
		return err
	}
	t, err := f.smtpTest()
	if err != nil {
		return err
	}
	return a.runTest(r, f, t, func(ctx context.Context, t mailer.TestRequest) (mailer.TestReport, error) {
		return a.Mail.TestSMTP(ctx, t)
	})
}

// testStored answers POST /projects/{projectId}/smtp-config/test. It tries what the project sends with.
func (a *API) testStored(r *web.Request, project *catalog.Project) error {
	f, err := readForm(r, []string{"toEmail"})
	if err != nil {
		return err
	}
	var t mailer.TestRequest
	f.Read("toEmail", &t.ToEmail)
	f.recipient(t.ToEmail)
	if err := f.Validated(nil); err != nil {
		return err
	}
	return a.runTest(r, f, t, func(ctx context.Context, t mailer.TestRequest) (mailer.TestReport, error) {
		return a.Mail.TestStored(ctx, project.ID, t)
	})
}

// runTest answers with the outcome of a test.
func (a *API) runTest(r *web.Request, f *form, t mailer.TestRequest,
	test func(context.Context, mailer.TestRequest) (mailer.TestReport, error)) error {
	if a.Mail == nil {
		return refuseMail
	}
	done, ok := a.Waits.tests.TryTake(r.Key.ID)
	if !ok {
		web.RetryAfter(r.Ctx, 5*time.Second)
		return refuseTests
	}
	defer done()
	f.Body = nil
	r.Charge.Release()
	if watch, watched := a.Waits.watched.Load(web.RequestID(r.Ctx)); watched {
		t.OnStep = watch.(func(string, time.Duration))
	}
	report, err := test(a.Waits.ctx, t)
	if err == nil {
		r.Succeed("connected, and a mail was sent", appendSMTPTest(nil, &report))
		return nil
	}
	// the settings are wrong, and not this service: 400, not 502
	if e, _ := web.Visible(err); strings.HasPrefix(string(e.Code), web.SMTPCodes) &&
		e.Code != catalog.CodeSMTPNotConfigured {
		web.Fail(r.Ctx, string(r.Ctx.URI().PathOriginal()), http.StatusBadRequest, e, appendSMTPTest(nil, &report))
		return nil
	}
	return err
}

// smtpTest reads the settings and the recipient.
func (f *form) smtpTest() (t mailer.TestRequest, err error) {
	c := &t.Config
	f.Require("host", "is required: the name or address of the SMTP server")
	f.Require("fromEmail", "is required: the sender's address")
	for _, field := range c.Fields() {
		switch secret, is := field.Value.(*catalog.Secret); {
		case !slices.Contains(smtpTestNames, field.Name):
		case is:
			if f.Read(field.Name, &secret.Ref); secret.Ref != "" {
				secret.Source = catalog.SecretPlain
			}
		default:
			f.Read(field.Name, field.Value)
		}
	}
	f.Read("toEmail", &t.ToEmail)
	f.recipient(t.ToEmail)
	if f.Has("port") && !f.Bad["port"] && c.Port == 0 {
		f.Fail("port", "must be a number from 1 to 65535")
	}
	return t, f.Validated(c.Validate())
}

func appendSMTPTest(dst []byte, report *mailer.TestReport) []byte {
	dst = strconv.AppendBool(append(dst, `{"connected":`...), report.Connected)
	dst = rowjson.AppendString(append(dst, `,"toEmail":`...), report.ToEmail)
	dst = strconv.AppendBool(append(dst, `,"mailSent":`...), report.MailSent)
	dst = append(dst, `,"steps":[`...) // in order; after a failure the last one is the step that failed
	for i, step := range report.Steps {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rowjson.AppendString(append(dst, `{"name":`...), step.Name)
		milliseconds := float64(step.Took.Round(time.Microsecond)) / float64(time.Millisecond)
		dst = strconv.AppendFloat(append(dst, `,"milliseconds":`...), milliseconds, 'f', -1, 64)
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if report.Reply != "" {
		dst = rowjson.AppendString(append(dst, `,"serverReply":`...), report.Reply)
	}
	return append(dst, '}')
}
