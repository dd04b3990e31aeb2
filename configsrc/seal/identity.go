package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"filippo.io/age"
)

// Identities are the keys that open sealed values: one, or several during a rotation.
type Identities struct {
	keys       []age.Identity
	recipients []string
}

// maxIdentityFile bounds an identity file, in bytes.
const maxIdentityFile = 64 << 10

// Keygen makes a new identity file at path, mode 0600, and the folder above it, mode 0700, if need be. It returns the
// identity's recipient. A file that is there already is never overwritten: the error then wraps fs.ErrExist.
func Keygen(path string) (recipient string, err error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("make seal key: %w", err)
	}
	recipient = id.Recipient().String()
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make seal key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make seal key: %s exists and is not overwritten: what it sealed could never be opened "+
			"again: %w", path, fs.ErrExist)
	}
	if err != nil {
		return "", fmt.Errorf("make seal key: %w", err)
	}
	text := "# fingerpost seal key: keep it secret, keep a copy, keep it out of git\n# public key: " + recipient + "\n" +
		id.String() + "\n"
	_, err = io.WriteString(f, text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		os.Remove(path) // half a key is worse than none; this process created the file
		return "", fmt.Errorf("make seal key: %w", err)
	}
	return recipient, nil
}

// syncDir makes a new file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Load reads an identity file: age's own format, one identity a line, X25519 only, "#" begins a comment. The error
// wraps fs.ErrNotExist when there is no file.
func Load(path string) (*Identities, error) {
	// Check before opening, because opening a device may have an effect and opening a FIFO would wait for its other end;
	// and after opening, because it may be another file.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read seal key: %s is no regular file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read seal key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read seal key: %w", err)
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read seal key: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxIdentityFile+1))
	if err != nil {
		return nil, fmt.Errorf("read seal key: %w", err)
	}
	if len(b) > maxIdentityFile {
		return nil, fmt.Errorf("read seal key: %s is too large for a key file", path)
	}
	return parse(path, b)
}

func parse(path string, b []byte) (*Identities, error) {
	ids := new(Identities)
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, err := age.ParseX25519Identity(line)
		if err != nil { // its text could quote the key
			return nil, fmt.Errorf("read seal key: %s:%d: this is no age X25519 identity (AGE-SECRET-KEY-1…)", path, n)
		}
		ids.keys = append(ids.keys, id)
		ids.recipients = append(ids.recipients, id.Recipient().String())
	}
	if len(ids.keys) == 0 {
		return nil, fmt.Errorf("read seal key: %s holds no identity", path)
	}
	return ids, nil
}

// Recipients returns the recipients of an identity file, in its order.
func Recipients(path string) ([]string, error) {
	ids, err := Load(path)
	if err != nil {
		return nil, err
	}
	return ids.recipients, nil
}
