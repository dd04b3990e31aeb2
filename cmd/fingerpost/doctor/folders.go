package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"fingerpost/api/conditions"
	"fingerpost/configsrc"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
	"fingerpost/resolver/pebblefs"
)

// The modes of access(2).
const (
	mayRead   = 4
	mayWrite  = 2
	maySearch = 1
)

// files checks the config files, or says what the running server has found.
func (p *patient) files(context.Context) []Result {
	switch {
	case p.running != nil:
		st := p.running.Config
		good := ok("the server has %s, %s and %s", catalog.Count(st.Files, "file"), catalog.Count(st.Projects, "project"),
			catalog.Count(st.Domains, "domain"))
		return p.withTold("files", append([]Result{good}, p.savedSince(st)...)...)
	case p.Cluster.IsEdge():
		return []Result{ok("this node is an edge: its files come from the authority")}
	case errors.Is(p.filesErr, fs.ErrNotExist):
		return []Result{failure(fmt.Sprintf(`"fingerpost init %s" writes an example; or give --config`, p.Files.Config), "%v",
			p.filesErr)}
	case p.filesErr != nil:
		return []Result{failure("let this user read the config folder, or give --config", "%v", p.filesErr)}
	}
	errors, warnings := 0, 0
	var first hclfile.Diagnostic
	for _, d := range p.checked.Problems {
		if d.Severity != hclfile.Error {
			warnings++
		} else if errors++; errors == 1 {
			first = d
		}
	}
	validate := fmt.Sprintf(`run "fingerpost validate --config %s"`, p.Files.Config)
	good := catalog.Count(len(p.checked.Files), "file") + " good"
	switch {
	case errors > 0:
		return []Result{failure(validate, "%s, %s; the first: %s: %s", good, catalog.Count(errors, "error"), place(first),
			first.Summary)}
	case len(p.checked.Files) == 0:
		return []Result{warning(fmt.Sprintf(`"fingerpost init %s" writes an example; or give --config`, p.Files.Config),
			"%s has no files: nothing is served", p.Files.Config)}
	case warnings > 0:
		return []Result{warning(validate, "%s, %s", good, catalog.Count(warnings, "warning"))}
	}
	return []Result{ok("%s in %s", good, p.Files.Config)}
}

// coarseTime is how far a file's time may lie before the moment of its save: a tick of the kernel's clock, and 2 s on FAT.
const coarseTime = 2 * time.Second

// savedSince are the problems of files that were saved after the server's last reload, and that the server does not tell.
func (p *patient) savedSince(st *configsrc.Status) (rs []Result) {
	if p.checked == nil {
		return nil
	}
	told := make(map[string]bool, len(st.Problems))
	for _, d := range st.Problems {
		told[d.File+"\x00"+d.Summary] = true
	}
	for _, d := range p.checked.Problems {
		if told[d.File+"\x00"+d.Summary] || len(rs) == maxLines {
			continue
		}
		if fi, err := os.Stat(d.File); err != nil || !fi.ModTime().Add(coarseTime).After(st.LastReload) {
			continue
		}
		r := warning(cmp.Or(d.Detail, conditions.KindOf("files-broken").Remedy),
			"%s: %s (saved after the server's last reload)", place(d), d.Summary)
		if d.Severity == hclfile.Error {
			r.State = Failure
		}
		rs = append(rs, r)
	}
	return rs
}

// place is where a problem is.
func place(d hclfile.Diagnostic) string {
	if d.Start.Line == 0 {
		return d.File
	}
	return d.File + ":" + strconv.Itoa(d.Start.Line)
}

// permissions checks what this user may do in the folders, and who else may read what is private.
func (p *patient) permissions(context.Context) (rs []Result) {
	rs = append(rs, p.dataFolder()...)
	if !p.Cluster.IsEdge() && p.filesErr == nil {
		rs = append(rs, p.configFolder()...)
	}
	for _, f := range p.PrivateFiles() {
		info, err := os.Stat(f.Path)
		switch {
		case f.Flag == "seal-key" && errors.Is(err, fs.ErrNotExist): // needed for sealed values alone, see secrets
		case err != nil:
			rs = append(rs, failure("let this user read it, or change --"+f.Flag, "--%s: %v", f.Flag, err))
		case !info.Mode().IsRegular():
			rs = append(rs, failure("give a file", "--%s %s is no regular file", f.Flag, f.Path))
		case syscall.Access(f.Path, mayRead) != nil:
			rs = append(rs, failure("let this user, and nobody else, read it: chown, chmod 600", "--%s: %s cannot be read",
				f.Flag, f.Path))
		case info.Mode().Perm()&0o007 != 0:
			rs = append(rs, failure("chmod 600 "+f.Path, "--%s: every user of this machine may read %s (mode %04o)", f.Flag,
				f.Path, info.Mode().Perm()))
		}
	}
	if rs == nil {
		rs = []Result{ok("the folders can be used, and what is private is")}
	}
	return rs
}

// special returns an error if one of the files is no regular one: to open a FIFO would wait for its other end.
func special(paths ...string) error {
	for _, path := range paths {
		if info, err := os.Stat(path); path != "" && err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
	}
	return nil
}

func (p *patient) dataFolder() []Result {
	dir := p.Files.Data
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		above := filepath.Dir(filepath.Clean(dir))
		for _, err = os.Stat(above); errors.Is(err, fs.ErrNotExist); _, err = os.Stat(above) {
			above = filepath.Dir(above)
		}
		if err := syscall.Access(above, mayWrite|maySearch); err != nil {
			return []Result{failure(fmt.Sprintf("make %s for the service's user, with mode 700, or give --data", dir),
				"%s does not exist and cannot be made: %s: %v", dir, above, err)}
		}
		return nil
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	if err == nil {
		if err = syscall.Access(dir, mayRead|mayWrite|maySearch); err != nil {
			err = fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err != nil {
		return []Result{failure("let this user read and write the data folder, or give --data", "%v", err)}
	}
	if mode := info.Mode().Perm(); mode&^pebblefs.PrivateDir != 0 {
		return []Result{warning("chmod 700 "+dir+" (serve does it at its start, unless other things are in it)",
			"%s, which has mail in it, is open to other users (mode %04o)", dir, mode)}
	}
	return nil
}

func (p *patient) configFolder() []Result {
	if p.Files.ReadOnly {
		return nil
	}
	if err := folder.Writable(p.Files.Config); err != nil {
		return []Result{warning("let this user write into the config folder, or serve --read-only",
			"writes over the API and in the console fail: %s: %v", p.Files.Config, err)}
	}
	if path := p.foreign(); path != "" {
		return []Result{warning(fmt.Sprintf("chown -R %d:%d %s, or give the service CAP_CHOWN and CAP_LEASE", os.Geteuid(),
			os.Getegid(), p.Files.Config),
			"writes over the API and in the console fail: %s belongs to another user or group, which a write keeps", path)}
	}
	return nil
}

// foreign returns a config file whose owner or group this user may not give to a new file, or "".
func (p *patient) foreign() (path string) {
	me := os.Geteuid()
	if me == 0 {
		return ""
	}
	groups, _ := os.Getgroups() // without them, the user has the process's group alone
	groups = append(groups, os.Getegid())
	_ = filepath.WalkDir(p.Files.Config, func(at string, d fs.DirEntry, err error) error {
		readable := err == nil && !d.IsDir() && filepath.Ext(at) == ".hcl" // see files for what cannot be read
		if readable && isForeign(d, me, groups) {
			path = at
			return filepath.SkipAll
		}
		return nil
	})
	return path
}

func isForeign(d fs.DirEntry, user int, groups []int) bool {
	info, err := d.Info()
	if err != nil {
		return false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && (int(stat.Uid) != user || !slices.Contains(groups, int(stat.Gid)))
}

// owner checks that the data folder belongs to this user.
func (p *patient) owner(context.Context) []Result {
	info, err := os.Stat(p.Files.Data)
	if err != nil { // see permissions
		return nil
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return nil
	}
	me, owner := os.Geteuid(), int(stat.Uid)
	switch {
	case me == owner:
		return []Result{ok("%s belongs to %s, as this process", p.Files.Data, name(me))}
	case me == 0:
		return []Result{warning(fmt.Sprintf(`run "sudo -u %s fingerpost doctor", with the service's variables`, name(owner)),
			"%s belongs to %s, and this is root: what root may read and write says nothing about the service", p.Files.Data,
			name(owner))}
	}
	return []Result{failure(fmt.Sprintf("run this and serve as %s, or \"chown -R %s %s\"", name(owner), name(me),
		p.Files.Data), "%s belongs to %s, and this is %s: the store would not open", p.Files.Data, name(owner), name(me))}
}

// name returns a user's name, or number.
func name(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// certificate checks the files of --tls-cert and --tls-key.
func (p *patient) certificate(context.Context) []Result {
	if p.Listen.TLSCert == "" {
		return nil
	}
	var pair tls.Certificate
	err := special(p.Listen.TLSCert, p.Listen.TLSKey)
	if err == nil {
		pair, err = tls.LoadX509KeyPair(p.Listen.TLSCert, p.Listen.TLSKey)
	}
	if err != nil {
		return []Result{failure("make --tls-cert and --tls-key a chain and its key in PEM form, which this user may read",
			"%s: %v", p.Listen.TLSCert, err)}
	}
	end, now := pair.Leaf.NotAfter, time.Now()
	const renew = "renew it; a running server takes the new file by itself"
	switch {
	case now.After(end):
		return []Result{failure(renew, "the certificate in %s was valid until %s", p.Listen.TLSCert, date(end))}
	case now.Before(pair.Leaf.NotBefore):
		return []Result{failure("look at the clock of this machine, or take another certificate",
			"the certificate in %s is valid from %s on", p.Listen.TLSCert, date(pair.Leaf.NotBefore))}
	case end.Sub(now) < conditions.Soon:
		return p.withTold("tls", warning(renew, "the certificate in %s is valid until %s", p.Listen.TLSCert, date(end)))
	}
	return p.withTold("tls", ok("the certificate in %s is valid until %s", p.Listen.TLSCert, date(end)))
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
