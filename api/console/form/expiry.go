package form

import (
	"slices"
	"strings"
	"time"

	"fingerpost/resolver/catalog"
)

// onDay is the choice of a day on which a key ends.
const onDay = "day"

// expiry makes the two fields that say when a new key ends.
func (x *control) expiry() {
	switch x.Name {
	case "expiresIn":
		x.Type, x.Choices = "select", []Choice{{"", "never"}, {"30d", "in 30 days"}, {"90d", "in 90 days"},
			{onDay, "on a day"}}
	case "expiresAt":
		x.Type = "date"
	}
}

// endBy leaves the choices that a giver can give whose own key ends, and begins with that end.
func (x *Field) endBy(ends, now time.Time) {
	ends = ends.Truncate(time.Second)
	x.Choices = slices.DeleteFunc(slices.Clone(x.Choices), func(c Choice) bool {
		days, isDays := strings.CutSuffix(c.Value, "d")
		lasts, err := time.ParseDuration(days + "h")
		return c.Value == "" || isDays && err == nil && now.Add(24*lasts).After(ends)
	})
	mine := Choice{catalog.Moment(ends), "with my key, at " + catalog.SayMoment(ends)}
	x.Choices = append([]Choice{mine}, x.Choices...)
	x.proposed = mine.Value
}

// expires puts what the fields of expiry say into a body, and reports whether they agree.
func (f *Form) expires(body map[string]any) bool {
	in, at := f.Field("expiresIn"), f.Field("expiresAt")
	if in == nil {
		return true
	}
	delete(body, at.Name)
	if _, err := catalog.ParseMoment(in.Text); err == nil && at.Text == "" {
		delete(body, in.Name)
		body[at.Name] = in.Text
		return true
	}
	if in.Text != onDay {
		if at.Text != "" {
			in.Error = "must be “on a day” where a day is given"
		}
		return at.Text == ""
	}
	delete(body, in.Name)
	if _, err := time.Parse(time.DateOnly, at.Text); err != nil {
		at.Error = "must be a day such as 2031-06-30"
		return false
	}
	body[at.Name] = at.Text + "T23:59:59"
	return true
}
