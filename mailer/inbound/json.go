package inbound

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// jsonTypes are the types of outcomes in the format json.
var jsonTypes = []string{string(catalog.SuppressHardBounce), string(catalog.SuppressComplaint),
	string(catalog.SuppressUnsubscribe)}

// readJSON reads an outcome in our own format: {type, email, projectId, at, detail}. Its id is made of all
// fields but the detail.
func readJSON(message []byte, now time.Time) (list []outcome, ignored int, err error) {
	var fields map[string]json.RawMessage // exact names, unlike a struct's
	if err := decode(message, &fields); err != nil {
		return nil, 0, err
	}
	var ps catalog.Problems
	text := func(name string, required bool) (value string) {
		raw := fields[name]
		if given := raw != nil && string(raw) != "null"; !given {
			if required {
				ps.Addf(name, "is required")
			}
		} else if json.Unmarshal(raw, &value) != nil {
			ps.Addf(name, "must be a string")
		} else if required && value == "" {
			ps.Addf(name, "must not be empty")
		}
		return value
	}
	o := outcome{reason: catalog.SuppressionReason(text("type", true)), detail: text("detail", false)}
	if o.reason != "" && !slices.Contains(jsonTypes, string(o.reason)) {
		ps.Addf("type", "must be one of %s", strings.Join(jsonTypes, ", "))
	}
	if address := text("email", true); address != "" {
		if o.address, err = addressOf(address); err != nil {
			ps.Addf("email", "%v", err)
		}
	}
	if raw := fields["projectId"]; raw != nil && string(raw) != "null" {
		if json.Unmarshal(raw, &o.project) != nil || o.project <= 0 {
			ps.Addf("projectId", "must be the id of a project")
		}
	}
	if at := text("at", true); at != "" {
		var ok bool
		switch o.at, ok = momentOf(at); {
		case !ok:
			ps.Addf("at", `must be a time such as "2026-01-31T09:30:00Z"`)
		case o.at.After(now.Add(ahead)):
			ps.Addf("at", "is in the future")
		}
	}
	if len(ps) > 0 {
		return nil, 0, invalid(ps...)
	}
	o.id = fmt.Sprintf("%d %d", o.project, o.at.UnixMicro())
	return []outcome{o}, 0, nil
}

// momentOf reads a time in UTC as this API writes it, or any time of RFC 3339.
func momentOf(text string) (time.Time, bool) {
	at, err := catalog.ParseMoment(text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	return at, err == nil
}

// decode reads a JSON object.
func decode(text []byte, to any) error {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return invalid(catalog.Problem{Path: "body", Message: "must be a JSON object"})
	}
	if err := json.Unmarshal(text, to); err != nil {
		return invalid(catalog.Problem{Path: "body", Message: "is not what the provider sends: " + err.Error()})
	}
	return nil
}

// invalid is the error for a message that is refused.
func invalid(ps ...catalog.Problem) error {
	return &catalog.Error{Code: catalog.CodeValidation, Message: "the message is refused", Problems: ps}
}

// saysProblems lists problems in one line, for the log.
func saysProblems(ps catalog.Problems) string {
	var all []string
	for _, p := range ps {
		all = append(all, strings.TrimSpace(p.Path+" "+p.Message))
	}
	return cmp.Or(strings.Join(all, "; "), "none")
}
