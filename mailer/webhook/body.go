package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"fingerpost/resolver/catalog"
	"fingerpost/resolver/records"
)

// maxBody is how long a body may be, in bytes.
const maxBody = 64 << 10

type body struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// encode writes a body. Equal values give equal bytes.
func encode(event string, at time.Time, data any) []byte {
	return marshal(body{event, at.UTC().Format(time.RFC3339Nano), data})
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("webhook: a value that cannot be encoded: " + err.Error()) // impossible: see catalog.FieldChange
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// entryData is what is said of an entry. Changes are as GET /api/platform/audit has them.
type entryData struct {
	Entry      int64             `json:"entry"`
	ProjectID  *int64            `json:"projectId"`
	Slug       *string           `json:"slug"`
	Object     *string           `json:"object"`
	Changes    []json.RawMessage `json:"changes"`
	Actor      *string           `json:"actor"`
	Door       string            `json:"door"`
	Commit     *string           `json:"commit"`
	Generation uint64            `json:"generation"`
	Truncated  bool              `json:"truncated,omitempty"`
}

type change struct {
	Field  string `json:"field"`
	Secret bool   `json:"secret,omitempty"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// entryBody returns the body for an entry, with a commit as it is sent. Changes are left out from the end where it
// would be too long.
func entryBody(e *catalog.AuditEntry, commit string) []byte {
	data := entryData{Entry: e.ID, ProjectID: orNull(e.ProjectID), Slug: orNull(e.Slug), Object: orNull(e.Object),
		Actor: orNull(e.Actor), Door: string(e.Door), Commit: orNull(commit), Generation: e.Generation,
		Changes: []json.RawMessage{}}
	size := len(encode(e.Action, e.Time, &data)) + len(`,"truncated":true`)
	for i := range e.Changes {
		c := &e.Changes[i]
		one := marshal(change{c.Field, c.Secret, c.Before, c.After})
		if size += len(one) + 1; size > maxBody {
			data.Truncated = true
			break
		}
		data.Changes = append(data.Changes, one)
	}
	return encode(e.Action, e.Time, &data)
}

// orNull returns nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// mailData is what is said of a mail that has ended: neither its text nor a variable.
type mailData struct {
	LogID        int64   `json:"logId"`
	ProjectID    int64   `json:"projectId"`
	ToEmail      string  `json:"toEmail"`
	TemplateCode *string `json:"templateCode"`
	Status       string  `json:"status"`
	ErrorCode    *string `json:"errorCode"`
}

func mailBody(m *records.EndedMail, log *catalog.MailLog) []byte {
	return encode(mailEvents[m.Status], m.Time, mailData{LogID: log.ID, ProjectID: log.ProjectID, ToEmail: log.ToEmail,
		TemplateCode: orNull(log.TemplateCode), Status: string(log.Status), ErrorCode: orNull(string(log.ErrorCode))})
}

// gapData says which events were lost, or may have been: entries of the trail, and ends of mails by their place.
type gapData struct {
	From  *int64   `json:"from"`
	To    *int64   `json:"to"`
	Mails *gapData `json:"mails,omitempty"`
}

// gapBody returns the body for the events behind a lane of a gap.
func gapBody(l *records.HookLane, at time.Time) []byte {
	of := func(after, last int64) gapData {
		if last <= after {
			return gapData{}
		}
		return gapData{From: new(after + 1), To: new(last)}
	}
	data := of(l.Entry, l.LastEntry)
	if mails := of(l.Mail, l.LastMail); mails.To != nil {
		data.Mails = &mails
	}
	return encode(GapEvent, at, data)
}

// idOf returns the webhook-id of what is next in a lane.
func idOf(epoch, hook string, l *records.HookLane, entry, mail int64) string {
	var id string
	switch {
	case l.Project == gapLane:
		id = fmt.Sprintf("%s.g%d-%d.%s", epoch, l.LastEntry, l.LastMail, hook)
	case mail != 0:
		id = fmt.Sprintf("%s.m%d.%s", epoch, mail, hook)
	default:
		id = fmt.Sprintf("%s.%d.%s", epoch, entry, hook)
	}
	if l.Replay != 0 {
		id += fmt.Sprintf(".r%d", l.Replay)
	}
	return id
}
