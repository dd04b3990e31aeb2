package catalog

import (
	"slices"
	"strings"
	"time"
)

// A Door is the way by which a change came in.
type Door string

// The doors.
const (
	DoorAPI     Door = "api"
	DoorConsole Door = "console"
	DoorFile    Door = "file"
	DoorGit     Door = "git"
	DoorCluster Door = "cluster"
	DoorCLI     Door = "cli"
	DoorDNS     Door = "dns" // what name servers say about a domain; nobody has asked for the change

	DoorMail Door = "mail" // what became of a mail
	DoorLink Door = "link" // a recipient's own link

	DoorInbound Door = "inbound" // what a provider of mail has told
)

// The actions that are no change of an object.
const (
	AuditLoad      = "store.load"     // all files, into an empty store
	AuditConfirm   = "brake.confirm"  // removals that were held back
	AuditRestore   = "backup.restore" // of the whole store
	AuditApply     = "proposal.apply"
	AuditApprove   = "proposal.approve"
	AuditDrop      = "proposal.drop"
	AuditOverruled = "write.overruled" // a write that a person's commit has set aside
	AuditEndLinks  = "customer-links.end"
	AuditReplay    = "webhook.replay" // past events were sent again
	AuditSuppress  = "suppression.add"
	AuditRelease   = "suppression.remove"
)

// The actions about what needs a person, see ConditionObject.
const (
	AuditBegins = "condition.begins"
	AuditEnds   = "condition.ends"
)

// The actions of DoorDNS. Most change a domain's Verified; one that does not tells of its proof alone. AuditLost and
// AuditFailing have the reason under AuditReason.
const (
	AuditVerify  = "domain.verify"
	AuditFailing = "domain.failing" // the proof is gone, and the domain is answered still
	AuditLost    = "domain.lost"
	// AuditSenderWorse is an entry about the address in From: of a project, whose SPF, DKIM or DMARC got worse.
	AuditSenderWorse = "sender.worse"
)

// AuditReason is the field of an entry's changes that says why they were made. No noun has such a field.
const AuditReason = "reason"

// The objects that the audit trail has actions for, which end in .create, .update and .delete, and the other actions.
var (
	AuditObjects = []string{"project", "service-settings", "auth-settings", "smtp-config", "domain", "template",
		"default-template", "key", "edge", "webhook", "login", "inbound"}
	AuditOthers = []string{"key.rotate", "defaults.update", "sealing.update", AuditLoad, AuditConfirm, AuditRestore,
		AuditApply, AuditApprove, AuditDrop, AuditOverruled, AuditEndLinks, AuditVerify, AuditFailing, AuditLost,
		"webhook.rotate", AuditReplay, AuditSenderWorse, AuditSuppress, AuditRelease, AuditBegins, AuditEnds}
	auditVerbs = []string{"create", "update", "delete"}
)

// refinedUpdates are the actions that are an update of their object, with a name of their own.
var refinedUpdates = []string{"key.rotate", AuditVerify, AuditLost}

// IsRefinedUpdate reports whether an action is an update that has a name of its own.
func IsRefinedUpdate(action string) bool { return slices.Contains(refinedUpdates, action) }

// IsAuditAction reports whether there is such an action.
func IsAuditAction(action string) bool {
	noun, verb, _ := strings.Cut(action, ".")
	return slices.Contains(AuditOthers, action) || slices.Contains(AuditObjects, noun) &&
		slices.Contains(auditVerbs, verb)
}

// An Author says who makes a change, and by which door.
type Author struct {
	Door      Door
	Actor     string // see AuditEntry
	Key       string
	RequestID string
	Commit    string
	Reason    string // of a change by DoorDNS; "": none
	Subject   string // see AuditEntry
}

// ErrUnaudited refuses the write of a client that the audit trail cannot take: nothing has changed.
var ErrUnaudited = &Error{Code: CodeUnavailable,
	Message: "the audit trail cannot be written at the moment; nothing was changed"}

// An AuditEntry is one entry of the audit trail: what happened to one object.
type AuditEntry struct {
	ID         int64     // counts up over the whole trail
	Time       time.Time // UTC, in whole microseconds
	Generation uint64
	Action     string // project.create, domain.update, key.rotate, …
	ProjectID  int64  // 0: the entry belongs to no project
	Slug       string // of the project before the change; "" without a project, and in entries of earlier builds
	Object     string // slug, domain, template code or key name; "" where the action says it all
	Changes    []FieldChange
	Door       Door
	Actor      string // X-Actor, else the key's name; "" if unknown
	Key        string // name of the API key, "" if none
	Subject    string // issuer|sub of a person who has signed in at a login; "": a key, or a file
	RequestID  string
	Commit     string
	Hash, Prev [32]byte // of this entry and of the previous one in its chain; Prev is zero in the first entry of a chain
}

// By reports whether who names the entry's author: as the actor is given, by the actor's name or address alone, or by
// the name of the key; a person who has signed in, by the subject, too. Case does not matter.
func (e *AuditEntry) By(who string) bool {
	name, address, _ := strings.Cut(e.Actor, " <")
	return strings.EqualFold(e.Actor, who) || strings.EqualFold(e.Key, who) || strings.EqualFold(e.Subject, who) ||
		strings.EqualFold(strings.Trim(name, `"`), who) || strings.EqualFold(strings.TrimSuffix(address, ">"), who)
}

// ConditionObject returns the object of an entry about a condition: its id and, where it has one, its subject, such as
// "edge-missing edge fra1".
func ConditionObject(id, subject string) string { return strings.TrimSpace(id + " " + subject) }

// TellsOf reports whether the entry is about a webhook: a change of it, or a condition of it.
func (e *AuditEntry) TellsOf(webhook string) bool {
	switch kind, _, _ := strings.Cut(e.Action, "."); kind {
	case "webhook":
		return e.Object == webhook
	case "condition":
		return strings.HasSuffix(e.Object, " webhook "+webhook)
	}
	return false
}

// A FieldChange is the change of one field. Before and After are nil, bool, int64, string, []string or
// map[string]string; both are nil for a secret.
type FieldChange struct {
	Field         string
	Secret        bool
	Before, After any
}

// An AuditQuery selects entries, the latest first.
type AuditQuery struct {
	ProjectID int64     // 0: all
	Actor     string    // "": all; else those that are By it
	Action    string    // "": all
	RequestID string    // "": all
	Newest    int64     // 0: all; else those among the newest so many entries of the trail, other projects' counted
	From, To  time.Time // From <= Time < To; zero: open
	// nil: all; else entries of the projects for which it is true, and none without a project
	Covers    func(project int64) bool
	Ascending bool // the oldest first
	Page      int  // from 1
	Limit     int
}

// An AuditPage is a page of entries, with the number of all that the query selects.
type AuditPage struct {
	Entries []AuditEntry
	Total   int64
}
