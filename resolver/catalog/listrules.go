package catalog

// checkProjects reports what is wrong with a list of projects, nil for every one, of an object that is called what in the
// files. empty says what becomes of an object whose list has none.
func (p *Problems) checkProjects(list []string, what, empty string) {
	if list != nil && len(list) == 0 && empty != "" {
		p.Warnf("projects", "is empty, so %s: name some, leave the line out for every project, or remove the %s", empty, what)
	}
	there := make(map[string]bool, len(list)) // a key may list every project
	for _, slug := range list {
		if msg := CheckSlug(slug); msg != "" {
			p.Addf("projects", "%q is no slug: it %s", slug, msg)
		} else if there[slug] {
			p.Warnf("projects", "%q is in the list twice", slug)
		}
		there[slug] = true
	}
}

// checkSecrets reports what is wrong with a list of 1 to most secrets. check returns what is wrong with one in clear text, ""
// for nothing, and purpose says what they are for.
func (p *Problems) checkSecrets(list []Secret, most int, purpose string, check func(text string) string) {
	switch n := len(list); {
	case n == 0:
		p.Addf("secret", "is required: it %s", purpose)
	case n > most:
		p.Addf("secret", "has %d values, %d are allowed", n, most)
	}
	for _, s := range list {
		if s.Source != SecretPlain {
			continue
		}
		if msg := check(s.Ref); msg != "" {
			p.Addf("secret", "%s", msg)
		}
	}
}
