package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"fingerpost/configsrc/atomicfile"
	"fingerpost/configsrc/folder"
	"fingerpost/resolver/catalog"
)

// Secrets opens the secrets of files. The zero value opens env() and clear text only. It is safe for concurrent use.
type Secrets struct {
	Dir        string // the config folder
	SecretsDir string // where file() may find secrets outside the config folder; "": nowhere
	Identities *Identities
	Clone      folder.Clone // of Dir
}

// maxSecretBytes bounds a secret that file() names, and a ca_file, which may be a bundle of all CAs.
const maxSecretBytes = 1 << 20

// Open returns a secret's plain value. context must be the one that a sealed value was made for, see Context.
// Errors name the source, never the value.
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
			return "", errors.New("there is no seal key here (serve --seal-key)")
		}
		return s.Identities.Open(context, secret.Ref)
	}
	return "", errors.New("no secret is given")
}

// Text returns the secret that a file holds: without the byte order mark and the one line end that editors add.
func Text(b []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(bytes.TrimPrefix(b, []byte("\ufeff"))), "\n"), "\r")
}

// readFile searches below the config folder first.
func (s *Secrets) readFile(name string) (string, error) {
	err := fs.ErrNotExist
	for _, in := range []struct {
		dir   string
		clone folder.Clone
	}{{s.Dir, s.Clone}, {s.SecretsDir, folder.Clone{}}} {
		if in.dir == "" {
			continue
		}
		var b []byte
		if b, err = in.clone.Text(in.dir, name, maxSecretBytes); err == nil {
			if catalog.IsLFSPointer(b) {
				return "", fmt.Errorf("read secret file %s: %s", name, catalog.LFSPointerText)
			}
			return Text(b), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			break // the name exists here, so no other file is meant
		}
	}
	return "", fmt.Errorf("read secret file %s: %w", name, atomicfile.Cause(err))
}
