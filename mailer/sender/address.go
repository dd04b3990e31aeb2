package sender

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"blitiri.com.ar/go/spf"
)

// ptr says what receivers find of the address from which the relay sends: its name, and the verdict of SPF.
func (e *examination) ptr() {
	if !e.sender.Address.IsValid() {
		return
	}
	address := e.sender.Address.String()
	verdict, err := spf.CheckHostWithSender(net.IP(e.sender.Address.AsSlice()), e.domain, "x@"+e.domain,
		spf.WithResolver(resolver{e.dns}))
	switch {
	case verdict == spf.Pass:
		e.say(OK, CheckSPF, "", "SPF lets %s send", address)
	case verdict == spf.TempError:
		e.say(Unknown, CheckSPF, "", "DNS did not answer all that SPF asks for %s", address)
	case err != nil && verdict == spf.PermError:
		e.say(Warning, CheckSPF, "", "SPF is an error for %s: %v", address, err)
	default:
		e.say(Warning, CheckSPF, "", "SPF does not let %s send: the verdict is %s", address, verdict)
	}
	name, found, err := e.confirmed(address)
	switch {
	case err != nil:
		e.unknown(CheckPTR, "PTR", address, err)
	case name == "":
		e.say(Note, CheckPTR, "", "%s has no name (PTR): large receivers refuse mail from such addresses", address)
	case !found:
		e.say(Note, CheckPTR, "", "the name of %s, %s, does not have that address: large receivers mistrust it", address,
			name)
	default:
		e.say(OK, CheckPTR, "", "%s is %s, in both directions", address, name)
	}
}

// confirmed returns the name of an address, and whether the name has the address.
func (e *examination) confirmed(address string) (name string, found bool, err error) {
	names, _, err := e.dns.Ask("PTR", reverse(e.sender.Address.AsSlice()))
	for _, name := range names[:min(len(names), 3)] {
		for _, kind := range []string{"A", "AAAA"} {
			values, _, err := e.dns.Ask(kind, name)
			if err != nil || slices.Contains(values, address) {
				return name, err == nil, err
			}
		}
	}
	if len(names) > 0 {
		name = names[0]
	}
	return name, false, err
}

// reverse returns the name under which DNS has the name of an address.
func reverse(raw []byte) string {
	var labels []string
	for _, b := range slices.Backward(raw) {
		if len(raw) == net.IPv4len {
			labels = append(labels, strconv.Itoa(int(b)))
		} else {
			labels = append(labels, strconv.FormatUint(uint64(b&15), 16), strconv.FormatUint(uint64(b>>4), 16))
		}
	}
	zone := "in-addr.arpa"
	if len(raw) != net.IPv4len {
		zone = "ip6.arpa"
	}
	return strings.Join(append(labels, zone), ".")
}

// resolver answers the library from a DNS.
type resolver struct{ dns DNS }

func (r resolver) ask(kind, name string) ([]string, error) {
	values, exists, err := r.dns.Ask(kind, strings.TrimSuffix(name, "."))
	switch {
	case err != nil:
		return nil, &net.DNSError{Err: err.Error(), Name: name, IsTemporary: true}
	case len(values) == 0 || !exists:
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return values, nil
}

// LookupTXT implements spf.DNSResolver.
func (r resolver) LookupTXT(_ context.Context, domain string) ([]string, error) {
	return r.ask("TXT", domain)
}

// LookupMX implements spf.DNSResolver.
func (r resolver) LookupMX(_ context.Context, domain string) (list []*net.MX, err error) {
	values, err := r.ask("MX", domain)
	for i, host := range mxHosts(values) {
		list = append(list, &net.MX{Host: host, Pref: uint16(i)})
	}
	return list, err
}

// LookupIPAddr implements spf.DNSResolver.
func (r resolver) LookupIPAddr(_ context.Context, host string) (list []net.IPAddr, err error) {
	four, err := r.ask("A", host)
	six, err6 := r.ask("AAAA", host)
	for _, v := range append(four, six...) {
		list = append(list, net.IPAddr{IP: net.ParseIP(v)})
	}
	if len(list) > 0 {
		return list, nil
	}
	if err == nil {
		err = err6
	}
	return nil, err
}

// LookupAddr implements spf.DNSResolver.
func (r resolver) LookupAddr(_ context.Context, address string) ([]string, error) {
	ip := net.ParseIP(address)
	if four := ip.To4(); four != nil {
		ip = four
	}
	return r.ask("PTR", reverse(ip))
}
