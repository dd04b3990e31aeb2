package datadir

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"fingerpost/resolver/ledger"
	"fingerpost/resolver/pebblefs"
	"fingerpost/resolver/store"
)

// ErrArchive: the input is no backup, or is truncated or damaged. Nothing was done with it.
var ErrArchive = errors.New("not a sound backup")

// An archive is one gzip member with a tar in it: the manifest, then the store's files in the manifest's order. The
// manifest comes first, so that the following bytes can be checked before they are accepted; gzip's checksum covers the
// manifest itself.
const (
	archiveKind    = "fingerpost-backup"
	archiveVersion = 1
	manifestName   = "fingerpost-backup.json"
	storeFolder    = "store/"
	ledgerFolder   = ledger.Folder + "/"
)

// The bounds of a manifest, far beyond any real store.
const (
	maxManifestBytes = 16 << 20
	maxArchiveFiles  = 100_000
	maxPaddingBytes  = 1 << 20 // zeros behind the tar's end
)

// A Manifest is the first entry of a backup and lists its content.
type Manifest struct {
	Kind         string       `json:"kind"`
	Version      int          `json:"version"` // of the archive's format
	CreatedAt    time.Time    `json:"createdAt"`
	StoreFormat  uint64       `json:"storeFormat"`
	LedgerFormat uint64       `json:"ledgerFormat"`
	PebbleFormat uint64       `json:"pebbleFormat"`
	Generation   uint64       `json:"generation"` // of the store
	Projects     int          `json:"projects"`
	Domains      int          `json:"domains"`
	Files        []StoredFile `json:"files"`
}

// A StoredFile is one of the files in a backup.
type StoredFile struct {
	Name   string `json:"name"`   // in the data directory
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // of the content, in hexadecimal
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// check reports what is wrong with a manifest.
func (m *Manifest) check() error {
	switch {
	case m.Kind != archiveKind:
		return fmt.Errorf("%w: its manifest is of the kind %q, not %q", ErrArchive, m.Kind, archiveKind)
	case m.Version > archiveVersion:
		return newerArchive("archive format", uint64(m.Version), archiveVersion)
	case m.StoreFormat > store.Format:
		return newerArchive("store format", m.StoreFormat, store.Format)
	case m.LedgerFormat > ledger.Format:
		return newerArchive("ledger format", m.LedgerFormat, ledger.Format)
	case m.PebbleFormat > store.PebbleFormat:
		return newerArchive("Pebble format", m.PebbleFormat, store.PebbleFormat)
	case m.Version < 1 || len(m.Files) == 0 || len(m.Files) > maxArchiveFiles:
		return fmt.Errorf("%w: its manifest has version %d and %d files", ErrArchive, m.Version, len(m.Files))
	}
	seen, total := make(map[string]bool, len(m.Files)), int64(0)
	for _, f := range m.Files {
		sum, err := hex.DecodeString(f.SHA256)
		switch {
		case !pebblefs.IsStoreFile(strings.TrimPrefix(f.Name, ledgerFolder)):
			return fmt.Errorf("%w: %q is no name of a store's file", ErrArchive, f.Name)
		case seen[f.Name]:
			return fmt.Errorf("%w: its manifest names %s twice", ErrArchive, f.Name)
		case f.Size < 0 || f.Size > math.MaxInt64-total:
			return fmt.Errorf("%w: its manifest has impossible sizes (%s: %d)", ErrArchive, f.Name, f.Size)
		case err != nil || len(sum) != sha256.Size:
			return fmt.Errorf("%w: the hash of %s is %q", ErrArchive, f.Name, f.SHA256)
		}
		seen[f.Name] = true
		total += f.Size
	}
	return nil
}

func newerArchive(what string, has, knows uint64) error {
	return fmt.Errorf("%w: a newer fingerpost made it (%s %d, this release reads %d); restore it with that release",
		ErrArchive, what, has, knows)
}

// writeArchive writes the manifest and the files that it names. open returns a file's content, which must match the
// manifest.
func writeArchive(w io.Writer, m *Manifest, open func(name string) (io.ReadCloser, error)) error {
	// Pebble has compressed the tables; a higher level than the fastest gains nothing that is worth the time.
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(zip)
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	header := func(name string, size int64) error {
		return out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600,
			ModTime: m.CreatedAt.Truncate(time.Second)})
	}
	if err := header(manifestName, int64(len(manifest))); err != nil {
		return err
	}
	if _, err := out.Write(manifest); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := header(entryName(f.Name), f.Size); err != nil {
			return err
		}
		in, err := open(f.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in) // a size other than the header's is an error of the tar
		if err := errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("archive %s: %w", f.Name, err)
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

// entryName returns the name of a file in the tar.
func entryName(name string) string {
	if strings.HasPrefix(name, ledgerFolder) {
		return name
	}
	return storeFolder + name
}

// An archiveTaker receives the entries that readArchive finds. Neither call may keep its reader.
type archiveTaker interface {
	begin(m *Manifest) error
	file(f StoredFile, content io.Reader) error
}

// readArchive reads a whole archive and checks every byte of it. Errors in the archive are ErrArchive. It reads in to
// the end, where the archive must end, too.
func readArchive(in io.Reader, to archiveTaker) (*Manifest, error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	zip, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, unsound("it does not begin as one", err)
	}
	zip.Multistream(false)
	tape := tar.NewReader(zip)
	m, err := readManifest(tape)
	if err != nil {
		return nil, err
	}
	if err := to.begin(m); err != nil {
		return nil, err
	}
	for i, f := range m.Files {
		h, err := tape.Next()
		if err != nil {
			return nil, unsound(fmt.Sprintf("it ends with %d of %d files", i, len(m.Files)), err)
		}
		if h.Typeflag != tar.TypeReg || h.Name != entryName(f.Name) || h.Size != f.Size {
			return nil, fmt.Errorf("%w: where its manifest has %s of %d bytes stands %q of %d bytes", ErrArchive, f.Name, f.Size,
				h.Name, h.Size)
		}
		sum := sha256.New()
		content := &countingReader{r: io.TeeReader(io.LimitReader(tape, f.Size), sum)}
		if err := to.file(f, content); err != nil {
			if content.err != nil { // the archive's fault, not the taker's
				return nil, unsound(f.Name+" cannot be read", content.err)
			}
			return nil, err
		}
		if content.n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
			return nil, fmt.Errorf("%w: %s is not what its manifest says (SHA-256 %s, %d bytes)", ErrArchive, f.Name, f.SHA256,
				f.Size)
		}
	}
	if h, err := tape.Next(); err == nil {
		return nil, fmt.Errorf("%w: it has %q, which its manifest does not name", ErrArchive, h.Name)
	} else if err != io.EOF {
		return nil, unsound("it does not end as one", err)
	}
	return m, readEnd(zip, buffered)
}

func readManifest(tape *tar.Reader) (*Manifest, error) {
	h, err := tape.Next()
	if err != nil {
		return nil, unsound("it holds no tar", err)
	}
	if h.Name != manifestName || h.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%w: it begins with %q instead of %s", ErrArchive, h.Name, manifestName)
	}
	if h.Size > maxManifestBytes {
		return nil, fmt.Errorf("%w: its manifest has %d bytes", ErrArchive, h.Size)
	}
	b, err := io.ReadAll(tape)
	if err != nil {
		return nil, unsound("its manifest cannot be read", err)
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: its manifest cannot be read: %w", ErrArchive, err)
	}
	return m, m.check()
}

// readEnd checks that only padding follows, and gzip's checksum.
func readEnd(zip io.Reader, in *bufio.Reader) error {
	padding, err := io.ReadAll(io.LimitReader(zip, maxPaddingBytes+1))
	if err != nil {
		return unsound("it does not end as one", err)
	}
	for _, b := range padding {
		if b != 0 || len(padding) > maxPaddingBytes {
			return fmt.Errorf("%w: something follows its end", ErrArchive)
		}
	}
	switch _, err := in.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("%w: something follows its end", ErrArchive)
	default:
		return unsound("it does not end as one", err)
	}
}

// unsound interprets a failed read: the archive is truncated or damaged, or the disk or peer that it comes from fails.
func unsound(where string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s: the archive is cut off", ErrArchive, where)
	}
	if pebblefs.Refused(err) {
		return fmt.Errorf("read the archive: %w", err)
	}
	return fmt.Errorf("%w: %s: %w", ErrArchive, where, err)
}

// A countingReader counts the bytes read and keeps the error.
type countingReader struct {
	r   io.Reader
	n   int64
	err error // except io.EOF
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// CheckArchive reads a backup and checks every byte of it, but does not open the store in it.
func CheckArchive(in io.Reader) (*Manifest, error) { return readArchive(in, nobody{}) }

type nobody struct{}

func (nobody) begin(*Manifest) error { return nil }

func (nobody) file(_ StoredFile, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}
