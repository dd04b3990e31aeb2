package conditions

import (
	"fmt"

	"fingerpost/resolver/catalog"
)

const (
	askCustomer = "ask the customer to publish the record again; if the domain was sold, remove it"
	domainGuide = "/docs/alerts#fingerpostdomainsfailing"
)

// domains are the conditions of customers' domains.
var domains = []Kind{
	{ID: "domain-lost", Severity: Warning, Broken: true, Check: "domains", Remedy: askCustomer, Guide: domainGuide,
		Except: "FingerpostDomainsFailing fires for it",
		find: func(s *State) []Condition {
			return unproven(s, "lost", "The proof of the domain %s has been gone for too long.",
				"The proofs of %s have been gone for too long.")
		}},
	{ID: "domain-failing", Severity: Warning, Broken: true, Check: "domains", Remedy: askCustomer,
		Alert: Alert{"DomainsFailing", `sum by (job, instance) (fingerpost_domains{ownership=~"failing|lost"}) > 0`, "30m",
			"{{ $labels.instance }}: the proof of {{ $value }} domains is gone from their DNS"},
		find: func(s *State) []Condition {
			return unproven(s, "failing", "The proof of the domain %s is gone; it is answered for now.",
				"The proofs of %s are gone; they are answered for now.")
		}},
	{ID: "domain-pending", Severity: Info, Check: "domains", Guide: "/docs/customer-domains",
		Remedy: "have the customer publish its record", Except: "a new domain waits for its customer",
		find: func(s *State) []Condition {
			return unproven(s, "pending", "The domain %s is not proven yet, and not answered.",
				"%s are not proven yet, and not answered.")
		}},
	{ID: "domain-checks", Severity: Warning, Broken: true, Check: "domains", Guide: "/docs/customer-domains",
		Remedy: "repair what the detail names; the checks go on by themselves",
		Except: "no metric says that they stand still",
		find: func(s *State) []Condition {
			return told(s.DomainChecks != "", "The checks of domains stand still.", s.DomainChecks)
		}},
	{ID: "sender-worse", Severity: Warning, Check: "mail",
		Remedy: `see which record changed: "fingerpost mail check", or the sender check of the console`,
		Alert: Alert{"SenderWorse", "fingerpost_mail_senders_worse > 0", "5m",
			"{{ $labels.instance }}: receivers find more wrong with the senders of {{ $value }} projects than before"},
		find: senders},
}

// senders are the projects whose mail receivers like less than before.
func senders(s *State) (list []Condition) {
	for _, x := range s.Senders {
		list = append(list, Condition{Subject: "project " + x.Slug, Since: at(x.Since), Project: x.Project, Of: "project",
			Sentence: "What receivers find of the sender of " + x.Slug + " has got worse (" + x.Is + ").",
			Many:     "What receivers find of the senders of %s has got worse."})
	}
	if len(list) > 0 {
		list[0].More = s.MoreSenders
	}
	return list
}

// unproven are the domains in a state of ownership.
func unproven(s *State, state, one, many string) (list []Condition) {
	for _, d := range s.Domains {
		if d.State == state {
			list = append(list, Condition{Subject: "domain " + d.Name, Sentence: fmt.Sprintf(one, d.Name), Since: at(d.Since),
				Project: d.Project, Domain: d.ID, Many: many, Of: "domain"})
		}
	}
	switch more := s.MoreDomains[state]; {
	case more > 0 && list == nil:
		list = []Condition{{Sentence: fmt.Sprintf(many, catalog.Count(more, "domain"))}}
	case more > 0:
		list[0].More = more
	}
	return list
}
