package catalog

// defaultsContext replaces a project's uuid in the context of the secrets of the defaults block. No project can claim
// it: it is no uuid.
const defaultsContext = "defaults"

// HasServer reports whether c names a server of its own. c may be nil.
func (c *SMTPConfig) HasServer() bool { return c != nil && c.Host != "" }

// Inherited reports whether the server of c, and its password, are those of the defaults block.
func (c *SMTPConfig) Inherited() bool { return c.UUID == UUID{} }

// SecretContext returns the context for which a secret of c is sealed: the owner and the field's name in files. The
// owner is the project, or the defaults block if the server is inherited. So a password that was sealed for one never
// opens for the other.
func (c *SMTPConfig) SecretContext(project UUID, field string) string {
	if c.Inherited() {
		return defaultsContext + "/" + field
	}
	return project.String() + "/" + field
}

// SMTPInForce returns the SMTP config with which a project sends; nil if there is none. own is the project's block. One
// with a host inherits nothing. Without a host, or without a block, the project uses the server of the defaults block
// as a whole, with its password. fromEmail, fromName, replyTo and dkimSelectors come from own if it has them, else from
// the defaults block; so does suppressBounces. Without a fromEmail there is no config. It may return own itself.
func SMTPInForce(own *SMTPConfig, defaults *Defaults) *SMTPConfig {
	switch {
	case own.HasServer():
		return own
	case defaults == nil || defaults.SMTP == nil:
		return nil
	}
	c := *defaults.SMTP
	if own != nil {
		for _, text := range []struct {
			to   *string
			from string
		}{{&c.FromEmail, own.FromEmail}, {&c.FromName, own.FromName}, {&c.ReplyTo, own.ReplyTo}} {
			if text.from != "" {
				*text.to = text.from
			}
		}
		if own.DKIMSelectors != nil {
			c.DKIMSelectors = own.DKIMSelectors
		}
		c.Active = c.Active && own.Active
		if own.SuppressBounces != nil {
			c.SuppressBounces = own.SuppressBounces
		}
	}
	if c.FromEmail == "" {
		return nil
	}
	return &c
}

// ValidateRelay is Validate for the config of the defaults block: projects may bring the sender.
func (c *SMTPConfig) ValidateRelay() Problems {
	var ps Problems
	c.validateServer(&ps)
	c.validateRest(&ps)
	return ps
}

// ValidateSender is Validate for a project's config without a host.
func (c *SMTPConfig) ValidateSender() Problems {
	var ps Problems
	c.validateRest(&ps)
	return ps
}
