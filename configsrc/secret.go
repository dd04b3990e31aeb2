package configsrc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

// ErrNoSealKey is why a sealed secret cannot be opened on a node without the seal key.
var ErrNoSealKey = errors.New("there is no seal key here (serve --seal-key)")

// Secrets turns the ways in which files give a secret into its plain value. The zero value opens env() and clear text
// only. It is safe for concurrent use.
type Secrets struct {
	Dir        string // the config folder
	SecretsDir string // where file() may find secrets outside the config folder; "" is nowhere
	Identities *seal.Identities
}

// maxSecretBytes bounds a secret that file() names, and a ca_file, which may be a bundle of all the CAs there are.
const maxSecretBytes = 1 << 20

// Open returns a secret's plain value. context is what a sealed value must have been made for, see seal.Context. Errors
// name the source, never the value.
func (s *Secrets) Open(secret catalog.Secret, context string) (string, error) {
	switch secret.Source {
	case catalog.SecretPlain:
		return secret.Ref, nil
	case catalog.SecretEnv:
		if v, ok := os.LookupEnv(secret.Ref); ok {
			return v, nil
		}
		return "", fmt.Errorf("the environment variable %s is not set", secret.Ref)
	case catalog.SecretFile:
		return s.readFile(secret.Ref)
	case catalog.SecretSealed:
		if s.Identities == nil {
			return "", ErrNoSealKey
		}
		return s.Identities.Open(context, secret.Ref)
	}
	return "", errors.New("no secret is given")
}

// readFile looks below the config folder first. One newline at the end, which editors add, is not part of the secret.
func (s *Secrets) readFile(name string) (string, error) {
	err := fs.ErrNotExist
	for _, dir := range []string{s.Dir, s.SecretsDir} {
		if dir == "" {
			continue
		}
		var b []byte
		if b, err = readBelow(dir, name); err == nil {
			return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			break // there is something of this name, and another file is not meant
		}
	}
	return "", fmt.Errorf("read secret file %s: %w", name, atomicfile.Cause(err))
}

// readBelow reads a file below a folder. It opens regular files only: a FIFO would keep the opening goroutine waiting.
func readBelow(dir, name string) ([]byte, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b, _, err := t.readNamed(name, maxSecretBytes)
	return b, err
}
