package conditions

import "time"

// A State is what is known of a node. The zero value of a field means that nothing is wrong there, or nothing is known.
type State struct {
	Time        time.Time
	NotReady    bool      // /readyz refuses
	Store       string    // why the store on disk is not in use
	Unaudited   bool      // the audit trail takes no entries
	DiskUsed    float64   // share of the disk of the data folder
	Certificate time.Time // when the served one ends
	Secrets     []Secret
	Keys        []Key
	AuditGaps   []Gap

	Files Files
	Git   Git

	MailRoom    string        // why new mail is refused
	MailWaits   time.Duration // age of the oldest mail that waits
	Stopped     []Stopped
	MoreStopped int // projects that Stopped does not have
	MailGaps    []Gap

	Cluster string        // why the node is not up to date with its cluster
	CutOff  time.Duration // since an edge heard its authority, once that is too long
	Edges   []Edge

	Domains []Domain
	// MoreDomains counts the domains of each state that Domains does not have.
	MoreDomains  map[string]int
	DomainChecks string // why they stand still

	Senders     []Sender // those that have got worse
	MoreSenders int      // that Senders does not have

	Webhooks       []Webhook // the active ones, on the node that delivers
	WebhookProblem string    // why nothing is delivered to any

	Inbound []Inbound // inbound blocks with which something is wrong
}

// An Inbound is an inbound block.
type Inbound struct {
	Name    string
	Closed  string    // why a secret of it cannot be opened
	Dropped time.Time // when an outcome was last dropped, because no project could be told
	Full    bool      // it takes no further outcomes for now
	// ListFull is when an outcome was last refused because its project's suppression list was full.
	ListFull time.Time
}

// Files are the config files.
type Files struct {
	Errors, Warnings         int
	Quarantined              int    // files
	FirstError, FirstWarning string // with their lines
	Error                    string // why the last look failed
	LastSuccess              time.Time
	LowDisk                  string // what the disk lacks for API writes
	Held                     *Held
}

// Held is a reload that is held back.
type Held struct {
	Reason            string
	Projects, Domains int // to be removed
	Since             time.Time
}

// Git is the repository of the files.
type Git struct {
	Errors    []string
	Conflict  string
	Behind    int // commits
	Overruled int // branches with writes that were set aside
}

// A Secret of a project has a problem.
type Secret struct {
	ProjectID               int64
	Project, Field, Message string
	Works                   bool
}

// A Key is an API key.
type Key struct {
	Name string
	Ends time.Time // zero: never
	Own  bool      // of the viewer
}

// A Gap is a part of a log that a damaged disk has cut out.
type Gap struct {
	Found  time.Time
	Reason string
}

// Stopped is a project whose mail waits until a person changes something.
type Stopped struct {
	Project               int64
	Slug, Name, Code, Why string // Why: a clause
	Waiting               int    // mails
	Since                 time.Time
}

// An Edge is what the authority knows of an edge, in the shape that the API and the cluster have.
type Edge struct {
	Name, Version, Position string // Version: "" if it was not heard since the authority's start
	Generation              uint64
	Current                 bool
	LagMS, BeatAgeMS        float64
	Ready                   bool
	Problem                 string // in its own words
}

// A Domain is a domain whose proof is not there.
type Domain struct {
	Project, ID int64
	Name        string
	State       string // pending, failing or lost
	Since       time.Time
}

// A Sender is a project whose sender check has got worse.
type Sender struct {
	Project int64
	Slug    string
	Is      string // warning or error
	Since   time.Time
}

// A Webhook is how the deliveries of one are, in the shape of /status.
type Webhook struct {
	Name      string    `json:"name"`
	Waiting   int       `json:"waiting"`         // projects of which something is to be delivered
	Failing   int       `json:"failing"`         // of these, those whose delivery has failed at least once
	Oldest    time.Time `json:"oldest,omitzero"` // when the oldest event happened of these
	Behind    int64     `json:"behind"`          // entries of the trail that it has not come to yet
	OffSince  time.Time `json:"offSince,omitzero"`
	OffReason string    `json:"offReason,omitempty"`
	DeadAt    time.Time `json:"deadAt,omitzero"`    // when the latest delivery was given up
	GapAt     time.Time `json:"gapAt,omitzero"`     // when the latest gap was told
	NoSecret  bool      `json:"noSecret,omitempty"` // none of its secrets can be used
}
