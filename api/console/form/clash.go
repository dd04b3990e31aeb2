package form

import "net/url"

// A Clash is a field to which a person has given another value than what the API has by now.
type Clash struct {
	Field         // its Text is the person's
	Theirs string // what the API has; "" for a secret
	Both   bool   // somebody else has changed it, too, since the form was shown
}

// Clashes fills the form with what a person has sent of an older one, and lists the fields that differ, and those that only
// somebody else has changed, which stay as they are now.
func (f *Form) Clashes(sent url.Values) (differ []Clash, others []Field) {
	now := make([]string, len(f.Fields))
	for i := range f.Fields {
		now[i] = f.Fields[i].Text
	}
	f.Fill(sent)
	for i := range f.Fields {
		x := &f.Fields[i]
		mark := sent.Get(markPrefix + x.Name)
		theirs := mark != "" && mark != x.Mark()
		switch {
		case x.touched && (x.Type == "password" || x.Text != now[i]):
			differ = append(differ, Clash{Field: *x, Theirs: now[i], Both: theirs})
		case theirs && !x.touched:
			others = append(others, *x)
		}
	}
	return differ, others
}
