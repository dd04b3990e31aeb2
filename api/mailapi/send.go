package mailapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fingerpost/api/web"
	"fingerpost/mailer"
	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/rowjson"
	"fingerpost/resolver/trace"
)

// Mailer sends mail and tests SMTP settings; *mailer.Mailer implements it.
type Mailer interface {
	Send(ctx context.Context, s mailer.Send) (mailer.Receipt, error)
	Repeat(project int64, key string, request [32]byte) (r mailer.Receipt, found bool, err error)
	ProjectsWithKey(key string) ([]int64, error)
	TestSMTP(ctx context.Context, t mailer.TestRequest) (mailer.TestReport, error)
	TestStored(ctx context.Context, project int64, t mailer.TestRequest) (mailer.TestReport, error)
	WaitingFor(project int64) string
	SecretProblem(project int64) *mailer.SecretProblem
	Kept(entry *catalog.MailLog) (mailer.Kept, bool)
}

var (
	headerReplay = []byte("Idempotent-Replay")

	refuseMail  = &catalog.Error{Code: catalog.CodeUnavailable, Message: "this server has no mail service"}
	refuseTests = &catalog.Error{Code: catalog.CodeRateLimited,
		Message: "too many SMTP tests of this key run at this moment; try again later"}
)

// sendTemplate answers POST /send/template.
func (a *API) sendTemplate(r *web.Request) error {
	fields := []string{"domain", "toEmail", "templateCode", "variables", localeField, againField, ignoreField,
		unsubscribeField}
	return a.send(r, fields, func(f *form, m *mailer.Send) {
		f.domain(m)
		f.repeats(m)
		f.templated(m)
	})
}

// sendTestTemplate answers POST /send/test-template.
func (a *API) sendTestTemplate(r *web.Request) error {
	fields := []string{"projectId", "toEmail", "templateCode", "variables", localeField, ignoreField, unsubscribeField}
	return a.send(r, fields, func(f *form, m *mailer.Send) {
		m.Rehearsal = true
		f.project(m)
		f.templated(m)
	})
}

// sendRaw answers POST /send/raw.
func (a *API) sendRaw(r *web.Request) error {
	fields := []string{"domain", "toEmail", "subject", "bodyHtml", "bodyText", againField, ignoreField}
	return a.send(r, fields, func(f *form, m *mailer.Send) {
		f.domain(m)
		f.repeats(m)
		f.rawParts(m)
	})
}

// send is the common part of the three calls. names are the fields of the body, and read reads them into the mail.
func (a *API) send(r *web.Request, names []string, read func(*form, *mailer.Send)) error {
	if err := r.Permit(); err != nil {
		return err
	}
	f, err := readForm(r, names)
	if err != nil {
		return err
	}
	m := mailer.Send{ServiceName: web.ServiceName(r.Ctx)}
	f.idempotencyKey(r, &m)
	read(f, &m)
	f.ignores(&m)
	if err := f.Validated(nil); err != nil {
		return err
	}
	if len(m.Ignored) > 0 && r.Key.Allow&catalog.MayWrite == 0 { // whether the address is listed or not
		return web.RefuseAllow(catalog.MayWrite)
	}
	if m.IdempotencyKey != "" { // the hash is only needed together with a key
		m.Request = requestHash(r.Path, f.Body)
	}
	if of, err := a.reach(r, &m); err != nil {
		if receipt, project := a.repeat(&m, of); receipt != nil {
			a.answerSend(r, project, receipt)
			return nil
		}
		return err
	}
	if a.Mail == nil {
		return refuseMail
	}
	if m.AgainOf != 0 {
		switch _, found, err := a.Log.MailLog(m.ProjectID, m.AgainOf); {
		case err != nil:
			return err
		case !found:
			return web.InvalidField(againField, "is no entry of this project's mail log")
		}
	}
	f.Body = nil
	r.Charge.Release() // a send may wait for a long time
	ctx, done := a.Waits.begin()
	defer done()
	receipt, err := a.Mail.Send(trace.Into(ctx, r.Span), m)
	if err != nil {
		e, _ := web.Visible(err)
		switch e.Code {
		case catalog.CodeUnavailable:
			if r.Key.At(m.ProjectID)&catalog.MayRead != 0 { // who may read the config may know what is wrong with it
				if p := a.Mail.SecretProblem(m.ProjectID); p != nil {
					err = &catalog.Error{Code: e.Code, Message: fmt.Sprintf("the %s of project %s cannot be opened: %s",
						p.Field, p.Slug, p.Message)}
				}
			}
		case catalog.CodeConflict:
			web.RetryAfter(r.Ctx, time.Second) // the first request with this key still runs
		case catalog.CodeRateLimited:
			web.RetryAfter(r.Ctx, 30*time.Second) // the queue or its disk is full
		}
		return err
	}
	a.answerSend(r, m.ProjectID, &receipt)
	return nil
}

// maxReached bounds the projects in which the first request of a repeat is looked for.
const maxReached = 100

// repeat returns the answer to a repeat under an Idempotency-Key whose domain is suspended, not verified or gone by now,
// with its project; nil if it is none.
func (a *API) repeat(m *mailer.Send, of []int64) (*mailer.Receipt, int64) {
	if a.Mail == nil || m.IdempotencyKey == "" || len(of) > maxReached {
		return nil, 0
	}
	for _, project := range of {
		if receipt, found, err := a.Mail.Repeat(project, m.IdempotencyKey, m.Request); err == nil && found {
			return &receipt, project
		}
	}
	return nil, 0
}

// reach finds the mail's project and checks that the key reaches it. With an error, of are the projects that a repeat of
// the request may be of: the one that is refused for now, or, if no project has the domain any more, those of the key's
// that it reaches.
func (a *API) reach(r *web.Request, m *mailer.Send) (of []int64, err error) {
	if m.Domain == "" {
		project, err := a.Live.ProjectByID(m.ProjectID)
		switch {
		case err != nil:
			return nil, r.HideMissing(err)
		case !r.Key.Covers(project.ID):
			return nil, web.RefuseProject
		}
		return nil, nil
	}
	answer, err := a.Live.Resolve([]byte(m.Domain), resolver.Nested)
	if err != nil {
		return nil, err
	}
	if refused := web.RefusedAnswer(r.Key, answer); refused != nil {
		switch {
		case answer.ProjectID == 0:
			of = a.mayHaveSent(r.Key, m.IdempotencyKey)
		case r.Key.Covers(answer.ProjectID):
			of = []int64{answer.ProjectID}
		}
		return of, refused
	}
	m.ProjectID, m.Domain = answer.ProjectID, ""
	return nil, nil
}

// mayHaveSent lists the projects that a key reaches and that may have accepted a request under an Idempotency-Key.
func (a *API) mayHaveSent(key *resolver.Key, idempotencyKey string) []int64 {
	if !key.EveryProject() || idempotencyKey == "" || a.Mail == nil {
		return key.ProjectIDs()
	}
	of, err := a.Mail.ProjectsWithKey(idempotencyKey)
	if err != nil {
		return nil // as if there were no first request
	}
	return of
}

// answerSend answers with the result of a send.
func (a *API) answerSend(r *web.Request, project int64, receipt *mailer.Receipt) {
	h := &r.Ctx.Response.Header
	if receipt.Replayed {
		h.SetCanonical(headerReplay, []byte("true"))
	}
	h.SetCanonical(web.HeaderLocation, fmt.Appendf(nil, "/api/mail/projects/%d/logs/%d", project, receipt.LogID))
	switch {
	case receipt.Failed != nil:
		web.Fail(r.Ctx, string(r.Ctx.URI().PathOriginal()), http.StatusBadGateway, receipt.Failed, nil)
	case receipt.Suppressed != "":
		r.Succeed("mail not sent: the suppression list has the address",
			fmt.Appendf(nil, `{"sent":false,"suppressed":true,"reason":"%s","logId":%d}`, receipt.Suppressed, receipt.LogID))
	case receipt.Sent:
		data := fmt.Appendf(nil, `{"sent":true,"logId":%d,"messageId":`, receipt.LogID)
		data = rowjson.AppendString(data, receipt.MessageID)
		if receipt.Kept {
			r.Succeed("mail kept by --mail-sink, not sent", append(data, `,"kept":true}`...))
		} else {
			r.Succeed("mail sent", append(data, '}'))
		}
	default:
		data := fmt.Appendf(nil, `{"sent":false,"queued":true,"logId":%d,"waitingFor":`, receipt.LogID)
		if waits := a.waitsFor(r, project); waits != "" {
			data = rowjson.AppendString(data, waits)
		} else {
			data = append(data, "null"...)
		}
		r.Succeed("mail queued", append(data, '}'))
		r.Ctx.Response.SetStatusCode(http.StatusAccepted)
	}
}

// waitsFor is mailWaitsFor for the sender of a mail. Only who may read the config learns what is wrong with a secret.
func (a *API) waitsFor(r *web.Request, project int64) string {
	if r.Key.At(project)&catalog.MayRead == 0 && a.Mail.SecretProblem(project) != nil {
		return "a secret of the SMTP config"
	}
	return a.mailWaitsFor(project)
}

// requestHash hashes path and body. Bodies that differ only in the layout of their JSON have the same hash.
func requestHash(path string, body *web.Object) [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte(path))
	h.Write(appendCanonical([]byte{0}, body))
	return [sha256.Size]byte(h.Sum(nil))
}

// appendCanonical writes a value in canonical form: names sorted, no blanks, numbers as the client spelled them.
func appendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case *web.Object:
		dst = append(dst, '{')
		for i, name := range slices.Sorted(slices.Values(v.Names)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(rowjson.AppendString(dst, name), ':')
			dst = appendCanonical(dst, v.Values[name])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, item)
		}
		return append(dst, ']')
	case string:
		return rowjson.AppendString(dst, v)
	case json.Number:
		return append(dst, v...)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return append(dst, "null"...)
}
