package tenant

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fingerpost/resolver/catalog"
)

const (
	fileFormat = "fingerpost tenants 1"
	saveEvery  = time.Second
	// saveShare bounds the part of the time that is spent writing: a file that takes long to write is written less often.
	saveShare = 20
	// touchEvery is the time after which answers that an open change feed confirms are written with a later time.
	touchEvery = time.Minute
)

var errLocked = errors.New("another process writes it")

// A file keeps the last good answers: a line of JSON with a fileHead, then one line for each name.
type file struct {
	path  string
	other string // the lock's file
	lock  *os.File
	kick  chan struct{} // holds one value when there is something to write
	told  string        // the last problem that was logged
	ours  bool          // the file has answers of this cache's URL and key, or had
}

type fileHead struct {
	Format   string `json:"format"`
	URL      string `json:"url"`
	Key      string `json:"key"` // hash of the key
	Position string `json:"position"`
	Sum      string `json:"sum"` // SHA-256 of the lines that follow
}

type fileLine struct {
	Host   string  `json:"host"`
	Tenant *Tenant `json:"tenant"`
}

// fileKey is what the file has of the key: the hash of a random text of 190 bits, which cannot be guessed.
func (c *Cache) fileKey() string {
	sum := sha256.Sum256([]byte("fingerpost tenants\x00" + c.o.URL + "\x00" + c.o.Key))
	return hex.EncodeToString(sum[:])
}

// openFile reads Options.File and begins to write it. A file that cannot be used is no reason to fail.
func (c *Cache) openFile() {
	c.file = &file{path: c.o.File, other: c.o.File + ".lock", kick: make(chan struct{}, 1)}
	if err := c.load(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log(c.o.Logger.Warn, "the file of answers is ignored", "file", c.o.File, "cause", err)
	}
	c.begin(c.keepSaving)
}

// load reads the file. Its answers are confirmed before they are used, unless the server is away.
func (c *Cache) load() error {
	f, err := os.Open(c.file.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.narrow(f); err != nil {
		return err
	}
	in := bufio.NewReader(f)
	first, err := in.ReadBytes('\n')
	var head fileHead
	switch {
	case err != nil || json.Unmarshal(first, &head) != nil || head.Format != fileFormat:
		return errors.New("it is damaged, or not such a file")
	case head.URL != c.o.URL || head.Key != c.fileKey():
		return errors.New("it belongs to another URL or key")
	}
	sum := sha256.New()
	lines := json.NewDecoder(io.TeeReader(in, sum))
	var read []fileLine
	for {
		var l fileLine
		if err := lines.Decode(&l); err == io.EOF {
			break
		} else if err != nil || l.Host == "" || l.Tenant == nil {
			return errors.New("it is damaged")
		}
		read = append(read, l)
	}
	if hex.EncodeToString(sum.Sum(nil)) != head.Sum {
		return errors.New("it is damaged")
	}
	c.file.ours = true
	now := c.clock.Now()
	for _, l := range read {
		if l.Tenant.AsOf.After(now) {
			l.Tenant.AsOf = now // the machine's clock was ahead
		}
		c.entries.put(&entry{host: l.Host, tenant: l.Tenant, asOf: l.Tenant.AsOf})
	}
	if at, err := catalog.ParsePosition(head.Position); err == nil {
		c.seen.at = at
	}
	if len(read) > 0 {
		c.is.ready = true
		close(c.ready)
	}
	return nil
}

// narrow takes the file's permissions from others. Where the path is a link, the file is somebody else's.
func (c *Cache) narrow(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if at, err := os.Lstat(c.file.path); err != nil || !os.SameFile(at, info) {
		return err
	}
	c.log(c.o.Logger.Warn, "others could read the file of answers; its mode is 0600 now", "file", c.file.path)
	return f.Chmod(0o600)
}

// dirty asks for a write.
func (c *Cache) dirty() {
	if c.file == nil {
		return
	}
	select {
	case c.file.kick <- struct{}{}:
	default:
	}
}

// keepSaving writes the file when there is something to write, at most once in saveEvery.
func (c *Cache) keepSaving() {
	stop := func() {}
	defer func() { stop() }()
	for {
		if c.o.MaxStale > 0 {
			stop()
			stop = c.clock.AfterFunc(touchEvery, c.dirty)
		}
		select {
		case <-c.file.kick:
		case <-c.ctx.Done():
			return
		}
		begun := time.Now()
		err := c.save()
		wait := max(saveEvery, time.Since(begun)*saveShare)
		if err != nil {
			wait = maxBackoff
			c.dirty()
		}
		if !c.sleep(wait) {
			return
		}
	}
}

// save writes the file unless another process does. Only one goroutine may call it at a time. A cache that never had an
// answer, as with a wrong key, leaves the file as it is.
func (c *Cache) save() error {
	c.mu.Lock()
	c.file.ours = c.file.ours || c.entries.positive.len > 0
	c.mu.Unlock()
	if !c.file.ours {
		return nil
	}
	err := c.file.acquire()
	if err == nil {
		err = c.file.write(c.fileText())
	}
	told := ""
	if err != nil {
		told = err.Error()
	}
	if told != c.file.told && told != "" {
		c.log(c.o.Logger.Warn, "the file of answers is not written", "file", c.file.path, "cause", err)
	}
	c.file.told = told
	return err
}

// fileText returns what the file has to have.
func (c *Cache) fileText() []byte {
	c.mu.Lock()
	tenants := make([]fileLine, 0, c.entries.positive.len)
	asOf := make([]time.Time, 0, c.entries.positive.len)
	c.each(func(e *entry) {
		if e.tenant != nil {
			tenants, asOf = append(tenants, fileLine{e.host, e.tenant}), append(asOf, c.asOf(e))
		}
	})
	head := fileHead{Format: fileFormat, URL: c.o.URL, Key: c.fileKey()}
	if c.seen.at.Epoch != "" {
		head.Position = c.seen.at.String()
	}
	c.mu.Unlock()
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	for i, l := range tenants {
		copied := *l.Tenant
		copied.AsOf = asOf[i]
		if err := out.Encode(fileLine{l.Host, &copied}); err != nil {
			panic("impossible: a tenant is JSON: " + err.Error())
		}
	}
	sum := sha256.Sum256(lines.Bytes())
	head.Sum = hex.EncodeToString(sum[:])
	first, err := json.Marshal(head)
	if err != nil {
		panic("impossible: a head is JSON: " + err.Error())
	}
	return append(append(first, '\n'), lines.Bytes()...)
}

// acquire takes the lock of the one process that writes, unless this process has it.
func (f *file) acquire() error {
	if f.lock != nil {
		return nil
	}
	l, err := lockFile(f.other)
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.other, err)
	}
	f.lock = l
	return nil
}

func (f *file) unlock() {
	if f.lock != nil {
		f.lock.Close()
	}
}

// write replaces the file: a reader sees the old text or the new one, also after a power cut.
func (f *file) write(text []byte) error {
	part := f.path + ".part"
	_ = os.Remove(part) // of a process that was killed
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(part, f.path)
	}
	if err != nil {
		_ = os.Remove(part)
		return err
	}
	if dir, err := os.Open(filepath.Dir(f.path)); err == nil {
		_ = dir.Sync() // not every system can
		dir.Close()
	}
	return nil
}
