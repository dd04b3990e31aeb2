package sender

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// from checks that the domain exists, and reports whether more can be asked of it.
func (e *examination) from() bool {
	_, exists, err := e.dns.Ask("NS", e.domain)
	switch {
	case err != nil:
		e.unknown(CheckFrom, "NS", e.domain, err)
	case !exists:
		e.say(Error, CheckFrom, "", "the domain %s of From: does not exist: receivers refuse the mail", e.domain)
		return false
	}
	return true
}

// mx checks that bounces and answers find a server.
func (e *examination) mx() {
	values, _, err := e.dns.Ask("MX", e.domain)
	if err != nil {
		e.unknown(CheckMX, "MX", e.domain, err)
		return
	}
	hosts := mxHosts(values)
	if len(hosts) == 0 {
		e.noMX()
		return
	}
	if hosts[0] == "" {
		e.say(Warning, CheckMX, "", "%s says that it takes no mail (MX \".\"): many receivers refuse mail from it", e.domain)
		return
	}
	for _, host := range hosts[:min(len(hosts), 3)] {
		switch found, err := e.address(host); {
		case err != nil:
			e.unknown(CheckMX, "A", host, err)
			return
		case found:
			e.say(OK, CheckMX, "", "answers and bounces go to %s", host)
			return
		}
	}
	e.say(Warning, CheckMX, "", "no mail server of %s has an address: bounces are lost, and many receivers refuse the "+
		"mail", e.domain)
}

func (e *examination) noMX() {
	record := e.domain + ". MX 10 mail." + e.domain + "."
	switch found, err := e.address(e.domain); {
	case err != nil:
		e.unknown(CheckMX, "A", e.domain, err)
	case found:
		e.say(Note, CheckMX, record, "%s has no MX record, so its own address takes answers and bounces", e.domain)
	default:
		e.say(Warning, CheckMX, record, "%s has neither a mail server nor an address: bounces are lost, and many receivers "+
			"refuse the mail", e.domain)
	}
}

// address reports whether a host has one.
func (e *examination) address(host string) (bool, error) {
	values, _, err := e.dns.Ask("A", host)
	if err == nil && len(values) > 0 {
		return true, nil
	}
	six, _, err6 := e.dns.Ask("AAAA", host)
	return len(six) > 0, cmp.Or(err, err6)
}

// mxHosts returns the hosts of MX records, the preferred one first; "" of the record that says that there is none.
func mxHosts(values []string) (hosts []string) {
	preference := func(v string) int {
		n, _, _ := strings.Cut(v, " ")
		i, _ := strconv.Atoi(n)
		return i
	}
	values = slices.Clone(values)
	slices.SortStableFunc(values, func(a, b string) int { return cmp.Compare(preference(a), preference(b)) })
	for _, v := range values {
		_, host, _ := strings.Cut(v, " ")
		hosts = append(hosts, host)
	}
	return hosts
}
