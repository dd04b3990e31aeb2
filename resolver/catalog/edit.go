package catalog

// An Edit is one change that a client asks for: of a project, of several, of a key or of a webhook. configsrc makes it, in
// the files and then in what is served, or describes it. Exactly one of NewProject, Project, Projects, Key and Webhook is
// set.
type Edit struct {
	By      Author
	Message string   // what the client says about the change (X-Change-Message); "": nothing
	Covers  Coverage // of the client's key
	DryRun  bool     // the change is checked and described, and not made

	NewProject *ProjectConfig // a project and its domains, with their UUIDs; nothing else of it is written
	Project    *ProjectEdit
	Projects   []ProjectEdit // of different projects, whose slugs, domains, templates and secrets stay: all or nothing
	Key        *KeyEdit
	Webhook    *WebhookEdit
	Takes      *Takeover // with Project; nil: nothing is taken over
}

// A Takeover is part of the edit of a project that adds a domain: another project has it pending, by a key that is limited
// to projects, and loses it in the same write. The edit's project has it as Verified. The error is CONFLICT for any other
// record.
type Takeover struct {
	From     UUID // the project that loses the domain
	Domain   string
	Verified string // the day of the proof
	Reason   string // for the audit trail of the project that loses it: it must not name the other one
}

// Is reports whether d is the domain.
func (t *Takeover) Is(d Domain) bool { return d.Name == t.Domain }

// A Coverage reports whether an API key reaches the project with the id; nil: the key reaches every project. Only such a
// key may declare any domain, and learns which project has a domain that it wants.
type Coverage func(project int64) bool

// A ProjectEdit changes or removes the block of one project.
type ProjectEdit struct {
	UUID UUID
	// Change gets the project as its file declares it now, with its settings in force, and makes the change, or refuses
	// it with an error that the client gets as it is. It may run again, on newer content, if somebody saves the file at
	// the same time. It must not keep the project.
	Change func(p *ProjectConfig) error
	Remove bool // the block is removed; Change, if it is set, may refuse that
	// Seals names the secrets of the SMTP config, by their fields, whose new values take the place of an env() or file()
	// call in the file, as sealed values.
	Seals []string
}

// A KeyEdit creates, rotates or revokes a key.
type KeyEdit struct {
	Name   string
	Create *Key                           // nil: the key exists
	Rotate func(k Key) (*Rotation, error) // nil, if Create is, too: the key is revoked. It may run again, on newer content
	Permit func() error                   // decides directly before the files change, while no other key changes
}

// A WebhookEdit creates, changes or removes a webhook.
type WebhookEdit struct {
	Name   string
	Create *Webhook // nil: the webhook exists
	// Change gets the webhook as its file declares it now, and makes the change, or refuses it with an error that the
	// client gets as it is; new secrets are in clear text. Name and UUID stay. Nil, if Create is, too: the webhook is removed.
	// It may run again, on newer content.
	Change func(w *Webhook) error
	Permit func() error // decides directly before the files change, see KeyEdit; nil: nothing is asked
	// Seals has new secrets take the place of env() and file() calls in the file, as sealed values.
	Seals bool
}
