package say

import (
	"net/mail"
	"strings"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A Part is a stretch of a sentence.
type Part struct {
	Text    string
	Project int64 // Text is the name of this project; 0: it is not
	Domain  bool  // Text is a domain
	Webhook bool  // Text is a webhook
	Strong  bool  // Text is the name of something that has no page
}

// A Sentence is what happened, without a full stop.
type Sentence []Part

// String returns the sentence as text.
func (s Sentence) String() string {
	var b strings.Builder
	for _, p := range s {
		b.WriteString(p.Text)
	}
	return b.String()
}

// SentenceOf returns the sentence of an entry. name returns what a project is called now, "" if there is no such project;
// nil: nothing is known of projects, and they are called by their slugs where the entry has them.
func SentenceOf(e *client.AuditEntry, name func(project int64) string) Sentence {
	w := writer{e: e, name: name, gone: strings.HasSuffix(e.Action, ".delete")}
	noun, verb, _ := strings.Cut(e.Action, ".")
	if other := others[e.Action]; other != nil {
		other(&w)
	} else if n, known := nouns[noun]; known && n.create != "" {
		w.who()
		switch verb {
		case "create":
			w.say(" " + n.create)
		case "delete":
			w.say(" " + n.remove)
		default:
			w.update(&n)
		}
	} else {
		w.who()
		w.text(" made the change " + e.Action)
	}
	return w.out
}

// A noun is how changes of an object of the audit trail are told. In each text, %p is the project and %o the object.
type noun struct {
	create, remove string
	of             string                    // the object, after "of"
	special        func(*writer, *noun) bool // says an update that has a verb of its own, else nothing; nil: none has
}

var nouns = map[string]noun{
	"project": {"created the project %p", "deleted the project %p", "%p", (*writer).project},
	"domain": {"added the domain %o to %p", "removed the domain %o from %p", "the domain %o of %p",
		(*writer).domain},
	"service-settings": {"set the service settings of %p", "removed the service settings of %p",
		"the service settings of %p", nil},
	"auth-settings": {"set the auth settings of %p", "removed the auth settings of %p", "the auth settings of %p", nil},
	"smtp-config":   {"set up the mail server of %p", "removed the mail server of %p", "the mail server of %p", nil},
	"template": {"added the mail template %o to %p", "removed the mail template %o from %p",
		"the mail template %o of %p", nil},
	"default-template": {"added the default mail template %o", "removed the default mail template %o",
		"the default mail template %o", nil},
	"key":      {"created the key %o", "revoked the key %o", "the key %o", (*writer).key},
	"edge":     {"let the edge %o join", "removed the edge %o", "the edge %o", nil},
	"webhook":  {"added the webhook %o", "removed the webhook %o", "the webhook %o", (*writer).webhook},
	"login":    {"added the login %o", "removed the login %o", "the login %o", nil},
	"inbound":  {"added the inbound block %o", "removed the inbound block %o", "the inbound block %o", nil},
	"defaults": {of: "the defaults of every project"},
	"sealing":  {of: "the sealing of secrets"},
}

// others are the actions that are not the creation, update or deletion of one object.
var others = map[string]func(*writer){
	"key.rotate":      func(w *writer) { w.who(); w.say(" rotated the key %o") },
	"webhook.rotate":  func(w *writer) { w.who(); w.say(" rotated the secret of the webhook %o") },
	"defaults.update": func(w *writer) { n := nouns["defaults"]; w.who(); w.update(&n) },
	"sealing.update":  func(w *writer) { n := nouns["sealing"]; w.who(); w.update(&n) },
	catalog.AuditLoad: func(w *writer) {
		w.say("All files were loaded: " + w.count("projects", "project") + " and " + w.count("domains", "domain"))
	},
	catalog.AuditConfirm: func(w *writer) {
		w.who()
		w.say(" let a reload through that was held back, with " + w.count("projects", "removed project") + " and " +
			w.count("domains", "removed domain"))
	},
	catalog.AuditRestore: func(w *writer) { w.who(); w.say(" restored the backup of "); w.strong(w.after("backup")) },
	catalog.AuditApply:   func(w *writer) { w.who(); w.say(" applied the proposal "); w.strong(w.after("proposal")) },
	catalog.AuditApprove: func(w *writer) { w.who(); w.say(" approved of the proposal "); w.strong(w.after("proposal")) },
	catalog.AuditDrop: func(w *writer) {
		w.who()
		w.say(" dropped the proposal ")
		w.strong(w.after("proposal"))
		if why := w.after("reason"); why != "" {
			w.say(": ")
			w.text(why)
		}
	},
	catalog.AuditBegins: func(w *writer) { w.condition("Something needs a person", (*writer).after) },
	catalog.AuditEnds:   func(w *writer) { w.condition("What needed a person is over", (*writer).before) },
	catalog.AuditReplay: func(w *writer) {
		w.who()
		what := "events"
		if w.change("count") != nil {
			what = w.count("count", "event")
		}
		w.say(" sent " + what + " again to the webhook %o")
	},
	catalog.AuditSuppress: func(w *writer) { w.who(); w.say(" put " + w.listed() + " onto the suppression list of %p") },
	catalog.AuditRelease:  func(w *writer) { w.who(); w.say(" took " + w.listed() + " off the suppression list of %p") },
	catalog.AuditEndLinks: func(w *writer) { w.who(); w.say(" ended the links of all customers to their domains") },
	catalog.AuditVerify:   func(w *writer) { w.who(); w.say(" found the proof that the domain %o belongs to %p") },
	catalog.AuditFailing:  func(w *writer) { w.who(); w.say(" misses the proof of the domain %o of %p"); w.because() },
	catalog.AuditSenderWorse: func(w *writer) {
		w.who()
		w.say(" found more wrong with the sender %o of %p than before")
		w.because()
	},
	catalog.AuditLost: func(w *writer) {
		w.who()
		if w.after("verified") != "" {
			w.say(" blocked the domain %o of %p, because its proof is gone")
		} else {
			w.say(" has given up the proof of the domain %o of %p, which is answered still")
		}
		w.because()
	},
	catalog.AuditOverruled: func(w *writer) {
		w.say("A commit by ")
		w.strong(Person(w.after("author")))
		w.say(" set aside what ")
		w.strong(Person(word(w.e.Actor)))
		w.say(" had saved; the branch ")
		w.strong(w.after("branch"))
		w.say(" keeps it")
	},
}

// condition says which condition has begun or ended. value reads the field of the entry that has its sentence.
func (w *writer) condition(what string, value func(*writer, string) string) {
	w.say(what + ": ")
	if sentence := strings.TrimSuffix(value(w, "sentence"), "."); sentence != "" {
		w.text(sentence)
	} else {
		w.say("%o")
	}
}

// listed says what a change of a suppression list is about.
func (w *writer) listed() string {
	if word(w.e.Object) != "" {
		return "%o"
	}
	return strings.TrimSuffix(w.count("count", "addresse"), "e")
}

// because adds the reason, if there is one.
func (w *writer) because() {
	if why := w.after(catalog.AuditReason); why != "" {
		w.say(": ")
		w.text(why)
	}
}

// doors say who acted where no person and no key is named.
var doors = map[string]string{
	string(catalog.DoorAPI):     "A caller of the API",
	string(catalog.DoorConsole): "The console",
	string(catalog.DoorFile):    "The files",
	string(catalog.DoorGit):     "The service",
	string(catalog.DoorCluster): "The authority",
	string(catalog.DoorCLI):     "A command",
	string(catalog.DoorDNS):     "The service",
	string(catalog.DoorMail):    "A bounce",
	string(catalog.DoorLink):    "A recipient",
	string(catalog.DoorInbound): "A provider of mail",
}

// who says who has made the change.
func (w *writer) who() {
	actor, key := word(w.e.Actor), word(w.e.Key)
	switch {
	case w.e.Action == catalog.AuditBegins, w.e.Action == catalog.AuditEnds:
		w.say("The service")
	case actor != "" && actor != key:
		w.strong(Person(actor))
	case key != "":
		w.say("The key ")
		w.strong(key)
	default:
		if door := doors[w.e.Door]; door != "" {
			w.say(door)
		} else {
			w.say("Somebody")
		}
	}
}

// Who says who made a change, for the middle of a sentence: "Ada Lovelace", "the files".
func Who(e *client.AuditEntry) string {
	w := writer{e: e}
	w.who()
	if first := w.out[0]; !first.Strong {
		w.out[0].Text = strings.ToLower(first.Text[:1]) + first.Text[1:]
	}
	return w.out.String()
}

// KeyWord names a key with a word for what it is: "key ci" or, for a person who has signed in, "login company".
func KeyWord(key string) string {
	if login, _, is := strings.Cut(key, "/"); is {
		return "login " + login
	}
	return "key " + key
}

// Person returns the name of a person who is given as "Name <address>".
func Person(actor string) string {
	if a, err := mail.ParseAddress(actor); err == nil {
		if a.Name != "" {
			return a.Name
		}
		return a.Address
	}
	if actor == "" {
		return "somebody"
	}
	return short(actor)
}

func word(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
