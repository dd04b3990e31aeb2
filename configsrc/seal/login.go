package seal

import "fingerpost/resolver/catalog"

// OpenLogin returns the client secret of a login, "" if the login has none. Each call reads the variable or file again.
func (s *Secrets) OpenLogin(l *catalog.Login) (string, error) {
	if l.ClientSecret.Source == catalog.SecretNone {
		return "", nil
	}
	return s.Open(l.ClientSecret, l.SecretContext())
}

// ReadLoginCA returns the PEM text of a login's ca_file, nil if the login has none. The file is below the config folder or
// the folder of secrets, and each call reads it again.
func (s *Secrets) ReadLoginCA(l *catalog.Login) ([]byte, error) {
	if l.CAFile == "" {
		return nil, nil
	}
	text, err := s.readFile(l.CAFile)
	return []byte(text), err
}
