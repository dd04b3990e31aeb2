package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

const (
	hostSuffix  = ".example"
	maxProjects = 1_000_000 // six digits in a slug
)

var (
	adjectives = []string{"amber", "brisk", "calm", "daring", "early", "fair", "gentle", "humble", "ivory", "jolly", "keen", "lively", "mellow", "noble", "open", "proud"}
	animals    = []string{"otter", "heron", "lynx", "badger", "marten", "falcon", "beaver", "ibex", "raven", "stoat", "tern", "vole", "wren", "bison", "crane", "dormouse"}
)

// makeSlugs names the projects: "brisk-otter-012345", where the digits are the project's number.
func makeSlugs(p corpusParams) []string {
	r := rand.New(rand.NewPCG(p.Seed, 0x5106))
	slugs := make([]string, p.Projects)
	name := func(i int) {
		slugs[i] = fmt.Sprintf("%s-%s-%06d", adjectives[r.IntN(len(adjectives))], animals[r.IntN(len(animals))], i)
	}
	for i := range slugs {
		name(i)
	}
	for {
		again := idClashes(slugs, p.perProject())
		if len(again) == 0 {
			return slugs
		}
		for _, i := range again {
			name(i)
		}
	}
}

// idClashes returns the projects that have a domain whose id equals that of another project's. Ids have 47 bits: of
// five million domains, two have the same id in nine of a hundred corpora, and a file with such a domain is refused.
func idClashes(slugs []string, domains int) (projects []int) {
	type owned struct {
		id      int64
		project int
	}
	ids := make([]owned, 0, len(slugs)*domains)
	for i, slug := range slugs {
		u := catalog.DeriveProjectUUID(slug)
		for k := range domains {
			d := catalog.DeriveDomainUUID(u, declaredLabel(k)+slug+hostSuffix)
			ids = append(ids, owned{catalog.DeriveID(catalog.KindDomain, d), i})
		}
	}
	slices.SortFunc(ids, func(a, b owned) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.project, b.project)) })
	for i := 1; i < len(ids); i++ {
		if ids[i].id == ids[i-1].id {
			projects = append(projects, ids[i].project)
		}
	}
	return projects
}

// projectNumber returns the project's number from a name that appendHost made, or -1.
func projectNumber(host []byte) int {
	n, digits := 0, 0
	for i := len(host) - len(hostSuffix) - 1; i >= 0 && digits < 6; i-- {
		c := host[i]
		if c < '0' || c > '9' {
			return -1
		}
		n += int(c-'0') * pow10[digits]
		digits++
	}
	if digits < 6 {
		return -1
	}
	return n
}

var pow10 = [6]int{1, 10, 100, 1000, 10000, 100000}

// declaredLabel returns the k-th domain of a project, up to the slug: the name itself, a shop, a wildcard, then
// regions.
func declaredLabel(k int) string {
	switch k {
	case 0:
		return ""
	case 1:
		return "shop."
	case 2:
		return "*."
	}
	return "region-" + strconv.Itoa(k) + "."
}

// askedLabels saves the load an allocation per question.
var askedLabels = func() (labels [16]string) {
	for k := range labels {
		labels[k] = declaredLabel(k)
	}
	labels[2] = "blog." // asks for the wildcard
	return labels
}()

func askedLabel(k int) string {
	if k < len(askedLabels) {
		return askedLabels[k]
	}
	return declaredLabel(k)
}

// projectFile returns the text of one project with the given number of domains, about 2.7 kB with three. The revision
// shows twice in every answer: as digits in the description, and its lowest bit as smsEnabled. An answer in which the
// two disagree was composed of two states.
func projectFile(slug string, domains, revision int) []byte {
	var b strings.Builder
	title := strings.ReplaceAll(slug, "-", " ")
	fmt.Fprintf(&b, "# %s: storefront, back office and their mail. Owned by the team whose folder this is.\n", title)
	fmt.Fprintf(&b, "project %q {\n  name        = %q\n", slug, title)
	fmt.Fprintf(&b, "  description = %q\n  status      = \"ACTIVE\"\n\n", description(slug, revision))
	for k := range domains {
		name := declaredLabel(k) + slug + hostSuffix
		if k == 0 {
			fmt.Fprintf(&b, "  domain %q { primary = true }\n", name)
		} else {
			fmt.Fprintf(&b, "  domain %q {}\n", name)
		}
	}
	fmt.Fprintf(&b, settingsText, revision%2 == 1, slug+hostSuffix, slug, slug+hostSuffix, title)
	fmt.Fprintf(&b, templatesText, title, title)
	return []byte(b.String())
}

// description returns the text of a project at a revision: plain ASCII, of the same length at every revision.
func description(slug string, revision int) string {
	return fmt.Sprintf("Storefront and back office of %s, revision %06d", strings.ReplaceAll(slug, "-", " "), revision)
}

const settingsText = `
  service_settings {
    auth_enabled         = true
    mail_enabled         = true
    sms_enabled          = %t
    audit_enabled        = true
    sms_provider         = "none"
    audit_retention_days = 365
  }

  auth_settings {
    registration_mode           = "APPROVAL_REQUIRED"
    approval_required           = true
    email_verification_required = true
    two_factor_required         = false
    jwt_expires_in              = "15m"
    refresh_token_expires_in    = "30d"
    session_timeout             = 3600
    password_min_length         = 12
    password_require_uppercase  = true
    password_require_numbers    = true
  }

  # The password is set on the machines, see the runbook.
  smtp_config {
    host        = "smtp.%s"
    port        = 587
    username    = "%s"
    password    = env("BENCH_SMTP_PASSWORD")
    from_email  = "hello@%s"
    from_name   = "%s"
    tls_enabled = true
    active      = true
  }
`

const templatesText = `
  template "WELCOME" {
    name             = "Welcome"
    subject_template = "Welcome to {{projectName}}, {{userName}}"
    body_html        = <<-EOT
      <html>
        <body style="font-family: sans-serif; max-width: 40em">
          <h1>Welcome, {{userName}}!</h1>
          <p>Good to have you at %s. Your account is ready, and your first order ships free.</p>
          <p><a href="{{loginUrl}}">Sign in</a> whenever you like.</p>
        </body>
      </html>
    EOT
    body_text        = <<-EOT
      Welcome, {{userName}}!
      Good to have you. Your account is ready, and your first order ships free.
      Sign in: {{loginUrl}}
    EOT
  }

  template "PASSWORD_RESET" {
    name             = "Password reset"
    subject_template = "Your code for {{projectName}}"
    max_age          = "10m"
    body_html        = <<-EOT
      <p>Hello {{userName}},</p>
      <p>your code is <strong>{{code}}</strong>. It is good for {{minutes}} minutes.</p>
      <p>If you did not ask for it, there is nothing that you need to do.</p>
    EOT
    body_text        = <<-EOT
      Hello {{userName}},
      your code is {{code}}. It is good for {{minutes}} minutes.
      If you did not ask for it, there is nothing that you need to do.
      %s
    EOT
  }
}
`

// keyFile declares a key.
func keyFile(id, text string, allow ...string) []byte {
	return fmt.Appendf(nil, "key \"bench\" {\n  id    = %q\n  hash  = %q\n  allow = [\"%s\"]\n}\n",
		id, catalog.HashKeyText(text), strings.Join(allow, `", "`))
}
