package tenant

import (
	"fmt"

	"fingerpost/resolver/hostname"
)

// canonical returns the name under which the server answers a host.
func canonical(host string) (string, error) {
	var buf [hostname.MaxLen]byte
	name, idn, err := hostname.Append(buf[:0], []byte(host))
	if err == nil && idn {
		var s string
		if s, err = hostname.FinishIDN(name); err == nil {
			return s, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: it %w", ErrInvalid, err)
	}
	if string(name) == host {
		return host, nil
	}
	return string(name), nil
}
