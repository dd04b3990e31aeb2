package form

import (
	"fingerpost/api/console/say"
	"fingerpost/resolver/catalog"
)

// emptyList stands for a list that is there and has nothing in it, where no text means that there is none.
const emptyList = "(none)"

// webhookFields lists the fields of a webhook, with lists that an answer of the API can fill.
func webhookFields() noun {
	fields := catalog.NewFields(catalog.KindWebhook)
	for i := range fields {
		switch fields[i].Value.(type) {
		case []string:
			fields[i].Value = new([]string)
		case []catalog.Secret:
			fields[i].Value = new(catalog.Secret)
		}
	}
	return fields
}

// webhook sets what the form of a webhook says about its fields.
func (x *control) webhook() {
	switch x.Name {
	case "name":
		x.fixed = true
	case "secret":
		x.kept = "Left empty, it stays. Rotate it instead, and receivers can change over without losing an event."
	case "events":
		for _, e := range say.Events() {
			x.Words = append(x.Words, Choice{e.Action, e.Text})
		}
	case "projects":
		x.kept = x.Help + " " + emptyList + " is an empty list: nothing is sent."
	}
}
