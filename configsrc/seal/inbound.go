package seal

import (
	"errors"

	"fingerpost/resolver/catalog"
)

// OpenInbound returns the secrets of an inbound block that can be opened and are fit, and why the others are not. Each call
// reads the variables and files again.
func (s *Secrets) OpenInbound(b *catalog.Inbound) (secrets []string, failed error) {
	for _, secret := range b.Secrets {
		text, err := s.Open(secret, b.SecretContext())
		if err == nil {
			if wrong := catalog.CheckInboundSecret(text); wrong != "" {
				err = errors.New("it " + wrong)
			}
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		secrets = append(secrets, text)
	}
	return secrets, failed
}
