package catalog

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A SuppressionReason is why a project does not send to an address (mailer/suppression.md).
type SuppressionReason string

// The reasons.
const (
	SuppressComplaint   SuppressionReason = "complaint"   // the recipient has called a mail spam
	SuppressHardBounce  SuppressionReason = "hard_bounce" // the address does not exist
	SuppressManual      SuppressionReason = "manual"      // a person has listed it
	SuppressUnsubscribe SuppressionReason = "unsubscribe" // the recipient wants no mail of a category, or of any
)

// SuppressionReasons lists the reasons, the strongest first.
var SuppressionReasons = []string{string(SuppressComplaint), string(SuppressHardBounce), string(SuppressManual),
	string(SuppressUnsubscribe)}

// Strength orders reasons: 1 is the strongest, 0 is none.
func (r SuppressionReason) Strength() int { return slices.Index(SuppressionReasons, string(r)) + 1 }

// A Suppression is an entry of a project's suppression list. There is one for each address, reason and category;
// addresses that differ in case alone are the same.
type Suppression struct {
	Address   string // canonical, see ParseAddress
	Reason    SuppressionReason
	Category  string // of templates; "": none. A complaint and a hard bounce have none
	Note      string
	CreatedAt time.Time
	By        string // the actor; "": the service itself, or the recipient
}

// Key identifies the entry in its list.
func (s *Suppression) Key() string {
	return strings.ToLower(s.Address) + "\x00" + string(s.Reason) + "\x00" + s.Category
}

// Limits on suppression lists.
const (
	// MaxSuppressions is how many entries a project's list may have for a request to add some. What the service adds by
	// itself is bounded by the mails that were sent.
	MaxSuppressions       = 2_000_000
	MaxSuppressionNote    = 500 // bytes
	MaxSuppressionsAtOnce = 1000
	maxCategoryLen        = 64
	categoryRule          = "must be 1 to 64 lower-case letters, digits, underscores and hyphens, and begin with one of " +
		"the first two"
	suppressionNoteTooLong = "must have at most 500 bytes, without control characters and line breaks"
)

var category = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// CheckCategory returns what is wrong with the category of a template, "" for nothing.
func CheckCategory(name string) string {
	if len(name) > maxCategoryLen || !category.MatchString(name) {
		return categoryRule
	}
	return ""
}

// MaxUnsubscribe is the longest address of a link with which a recipient unsubscribes, in bytes: a line of a mail's header
// has 998.
const MaxUnsubscribe = 900

// CheckUnsubscribe returns what is wrong with a caller's link with which a recipient unsubscribes, "" for nothing.
// Receivers take https alone (RFC 8058).
func CheckUnsubscribe(link string) string {
	u, err := url.Parse(link)
	switch {
	case len(link) > MaxUnsubscribe:
		return fmt.Sprintf("has %d bytes, %d are allowed", len(link), MaxUnsubscribe)
	case err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || !printable(link):
		return "must be an https address such as https://news.acme.example/leave?id=4711, in ASCII, without blanks, a user " +
			"name and a fragment"
	}
	return ""
}

// printable reports whether a link can stand between angle brackets in a header.
func printable(link string) bool {
	return !strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>"`, r) })
}

// Validate makes the address canonical and returns what is wrong with the entry.
func (s *Suppression) Validate() (ps Problems) {
	address, err := ParseAddress(s.Address)
	if err != nil {
		ps.Addf("address", "%v", err)
	} else {
		s.Address = address
	}
	if s.Reason.Strength() == 0 {
		ps.Addf("reason", "must be one of %s", strings.Join(SuppressionReasons, ", "))
	}
	switch alone := s.Reason == SuppressComplaint || s.Reason == SuppressHardBounce; {
	case s.Category == "":
	case alone:
		ps.Addf("category", "must be left out: %s stops mail of every category", s.Reason)
	default:
		if msg := CheckCategory(s.Category); msg != "" {
			ps.Addf("category", "%s", msg)
		}
	}
	if len(s.Note) > MaxSuppressionNote || strings.ContainsFunc(s.Note, BreaksLine) {
		ps.Addf("note", suppressionNoteTooLong)
	}
	return ps
}

// A SuppressionQuery selects entries of a list, by address. Zero values do not filter.
type SuppressionQuery struct {
	Page, Limit int // both from 1
	Descending  bool
	Address     string // in any case
	Reason      SuppressionReason
	Category    string // NoCategory: entries without one
	Text        string // part of the address, in any case
}

// NoCategory is the Category of a query for entries that have none. It is no name of one.
const NoCategory = "-"

// Selects reports whether an entry has the query's reason and category.
func (q *SuppressionQuery) Selects(s *Suppression) bool {
	return (q.Reason == "" || s.Reason == q.Reason) &&
		(q.Category == "" || s.Category == q.Category || q.Category == NoCategory && s.Category == "")
}

// A Once is what has become of an entry that is added once.
type Once uint8

// The values of a Once.
const (
	OnceBefore  Once = iota + 1 // it was called before: nothing was changed
	OncePresent                 // the list has the entry already
	OnceAdded
)

// A SuppressionChange changes the suppression list of a project.
type SuppressionChange struct {
	ProjectID   int64
	Add, Remove []Suppression
}
