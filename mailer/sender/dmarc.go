package sender

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// policies are the values of p and sp.
var policies = []string{"none", "quarantine", "reject"}

// dmarc checks the policy in force (RFC 7489 6.6.3), and whether mail can meet it.
func (e *examination) dmarc(spf, dkim can) {
	text, at, ok := e.policyRecord()
	if !ok {
		return
	}
	tags, first, isList := parseTags(text)
	policy := strings.ToLower(tags["p"])
	switch {
	case !isList || first != "v" || tags["v"] != "DMARC1":
		e.say(Warning, CheckDMARC, "", "the DMARC record at %s cannot be read: %q", at, cut(text))
		return
	case !slices.Contains(policies, policy):
		e.say(Warning, CheckDMARC, txt(at, "v=DMARC1; p=none"), "the DMARC record at %s has no policy that receivers know "+
			"(p=%s)", at, cut(tags["p"]))
		return
	}
	own := at == "_dmarc."+e.domain
	if sub := strings.ToLower(tags["sp"]); !own && slices.Contains(policies, sub) {
		policy = sub
	}
	e.judgePolicy(policy, tags, at, own, spf, dkim)
}

// judgePolicy judges a policy that receivers follow.
func (e *examination) judgePolicy(policy string, tags map[string]string, at string, own bool, spf, dkim can) {
	cannot := spf == no && dkim == no
	switch {
	case cannot && policy == "reject":
		e.say(Error, CheckDMARC, "", "DMARC (%s) has receivers reject the mail, and neither SPF nor DKIM can pass for %s",
			at, e.domain)
		return
	case cannot && policy == "quarantine":
		e.say(Warning, CheckDMARC, "", "DMARC (%s) has receivers put the mail into the junk folder, and neither SPF nor "+
			"DKIM can pass for %s", at, e.domain)
		return
	case policy == "none":
		e.say(Note, CheckDMARC, "", "DMARC (%s) only watches (p=none): others can send as %s", at, e.domain)
	case !own:
		e.say(Note, CheckDMARC, "", "the policy of DMARC, %s, is that of %s", policy, at)
	default:
		e.say(OK, CheckDMARC, "", "the policy of DMARC is %s", policy)
	}
	if pct, err := strconv.Atoi(tags["pct"]); err == nil && pct < 100 && policy != "none" {
		e.say(Note, CheckDMARC, "", "DMARC applies to %d %% of the mail (pct)", pct)
	}
}

// policyRecord returns the record of the domain, else that of the organisation.
func (e *examination) policyRecord() (text, at string, ok bool) {
	places := []string{e.domain}
	if top, err := publicsuffix.EffectiveTLDPlusOne(e.domain); err == nil && top != e.domain {
		places = append(places, top)
	}
	for _, place := range places {
		at = "_dmarc." + place
		values, _, err := e.dns.Ask("TXT", at)
		if err != nil {
			e.unknown(CheckDMARC, "TXT", at, err)
			return "", "", false
		}
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool {
			return !strings.HasPrefix(strings.ToLower(strings.ReplaceAll(v, " ", "")), "v=dmarc1")
		})
		if len(values) > 1 {
			e.say(Warning, CheckDMARC, "", "there are %d DMARC records at %s, one is allowed: to receivers there is none",
				len(values), at)
			return "", "", false
		}
		if len(values) == 1 {
			return values[0], at, true
		}
	}
	e.say(Warning, CheckDMARC, txt("_dmarc."+e.domain, "v=DMARC1; p=none"), "%s has no DMARC record: large receivers "+
		"want one", e.domain)
	return "", "", false
}
