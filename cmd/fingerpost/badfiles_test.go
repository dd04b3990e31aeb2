package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf16"

	"fingerpost/cmd/testrig"
	"fingerpost/resolver/catalog"
)

// A badFile is a file that does not belong into the config folder.
type badFile struct {
	name string // below projects.d
	text string
	make func(path string) error // where a text will not do
	line int                     // of its first problem; 0: it has no line
	says string                  // a pattern for what the problem says
}

// textFiles are the bad files that consist of text or bytes.
func textFiles() []badFile {
	noise := make([]byte, 4096)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(noise); i++ {
		noise[i] = byte(r.Uint32())
	}
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("project \"wide\" {\n  name = \"W\"\n}\n")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	project := func(body string) string { return "project \"bad\" {\n  name = \"Bad\"\n" + body + "\n}\n" }
	key, _ := catalog.NewKeyText()
	return []badFile{
		{name: "key-text.hcl", text: "# Do not lose this:\n# " + key + "\n", line: 2, says: "(?i)rotate"},
		{name: "secret.hcl", text: project("  auth_settings {\n    jwt_secret = \"" + clearSecret + "\" junk\n  }"), line: 4, says: "."},
		{name: "binary.hcl", text: "\x7fELF\x02\x01\x01" + string(noise), line: 2, says: "(?i)binary"},
		{name: "nul.hcl", text: project("  description = \"a\x00b\""), line: 3, says: "(?i)nul|control|0x00|U\\+0000"},
		{name: "only-nul.hcl", text: strings.Repeat("\x00", 5000), line: 1, says: "(?i)nul|binary|text|character"},
		{name: "utf16.hcl", text: string(wide), line: 1, says: "(?i)utf-?16|utf-?8"},
		{name: "latin1.hcl", text: project("  description = \"B\xfccher\""), line: 3, says: "(?i)utf-?8"},
		{name: "attribute.hcl", text: project("  descripton = \"x\""), line: 3, says: "did you mean .?description"},
		{name: "block.hcl", text: project("  domian \"a.bad.example\" {}"), line: 3, says: "did you mean .?domain"},
		{name: "top-block.hcl", text: "projekt \"bad\" {\n}\n", line: 1, says: "did you mean .?project"},
		{name: "top-attribute.hcl", text: "\nname = \"x\"\n", line: 2, says: "name"},
		{name: "type.hcl", text: project("  domain \"a.bad.example\" { primary = \"yes\" }"), line: 3, says: "(?i)true|bool"},
		{name: "number.hcl", text: project("  auth_settings { password_min_length = [12] }"), line: 3, says: "(?i)number"},
		{name: "status.hcl", text: project("  status = \"active\""), line: 3, says: "ACTIVE"},
		{name: "slug.hcl", text: "project \"Bad Slug\" {\n  name = \"x\"\n}\n", line: 1, says: "(?i)lower|a-z"},
		{name: "reference.hcl", text: project("  description = var.text"), line: 3, says: "(?i)reference|variable|literal"},
		{name: "bare-word.hcl", text: project("  status = ACTIVE"), line: 3, says: "(?i)quot|reference|literal"},
		{name: "template.hcl", text: project("  description = \"a ${local.b} c\""), line: 3, says: "(?i)interpolat|template|\\$\\$|literal|reference"},
		{name: "function.hcl", text: project("  description = upper(\"x\")"), line: 3, says: "upper"},
		{name: "env.hcl", text: project("  description = env(\"HOME\")"), line: 3, says: "env"},
		{name: "file-out.hcl", text: project("  auth_settings { jwt_secret = file(\"../../etc/passwd\") }"), line: 3, says: "(?i)below|outside|out of"},
		{name: "for.hcl", text: project("  description = [for x in [1, 2] : x]"), line: 3, says: "(?i)for|literal|text|string"},
		{name: "conditional.hcl", text: project("  description = true ? \"a\" : \"b\""), line: 3, says: "(?i)literal|condition|expression"},
		{name: "dynamic.hcl", text: project("  dynamic \"domain\" {\n    for_each = [\"a\"]\n  }"), line: 3, says: "dynamic"},
		{name: "markers.hcl", text: project("<<<<<<< HEAD\n  status = \"DRAFT\"\n=======\n  status = \"ACTIVE\"\n>>>>>>> theirs"), line: 3, says: "(?i)conflict|merge"},
		{name: "labels.hcl", text: project("  domain \"a.bad.example\" {}\n  domain \"A.bad.example.\" {}"), line: 4, says: "labels\\.hcl:3:10"},
		{name: "two-projects.hcl", text: project("") + project(""), line: 5, says: "bad"},
		{name: "twice.hcl", text: project("  name = \"Again\""), line: 3, says: "name"},
		{name: "taken-domain.hcl", text: project("  domain \"SHOP.acme.example\" {}"), line: 3, says: "acme\\.hcl"},
		{name: "taken-slug.hcl", text: "project \"acme\" {\n  name = \"Mine\"\n}\n", line: 1, says: "acme\\.hcl"},
		{name: "heredoc.hcl", text: project("  description = <<EOT\n  and no end"), line: 3, says: "(?i)heredoc|EOT"},
		{name: "quote.hcl", text: project("  description = \"no end"), line: 3, says: "(?i)quot|string|terminat"},
		{name: "brace.hcl", text: "project \"bad\" {\n  name = \"Bad\"\n", line: 1, says: "(?i)brace|block|\\}"},
		{name: "brackets.hcl", text: strings.Repeat("[", 120_000), line: 1, says: "(?i)deep|nest|depth"},
		{name: "deep-value.hcl", text: project("  description = " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), line: 3, says: "(?i)deep|nest|depth"},
		{name: "parentheses.hcl", text: project("  description = " + strings.Repeat("(", 20_000)), line: 3, says: "(?i)deep|nest|depth"},
		{name: "templates.hcl", text: project("  description = " + strings.Repeat("\"${", 50_000)), line: 3, says: "(?i)deep|nest|depth"},
		{name: "nested-blocks.hcl", text: strings.Repeat("a {\n", 10_000) + strings.Repeat("}\n", 10_000), line: 101, says: "(?i)deep|nest|depth"},
		{name: "nots.hcl", text: project("  description = " + strings.Repeat("!", 20_000) + "true"), line: 3, says: "."},
		{name: "burner.hcl", text: project("  description = \"${1e10000000}\""), line: 3, says: "(?i)interpolat|template|literal|\\$\\$"},
		{name: "exponent.hcl", text: project("  id = 1e1000000000"), line: 3, says: "."},
		{name: "many-errors.hcl", text: project(strings.Repeat("  x = 1\n", 2_000)), line: 3, says: "."},
		{name: "too-long.hcl", text: "#" + strings.Repeat("x", 1<<20), says: "(?i)1 ?MiB|large|big|long"},
		{name: "empty-lines.hcl", text: project("  description = <<EOT\n" + strings.Repeat("\n", 400_000) + "EOT"), line: 21697, says: "file\\("},
	}
}

// oddFiles are the bad ones that are no regular files.
func oddFiles() []badFile {
	return []badFile{
		{name: "sparse.hcl", make: func(path string) error {
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(100<<20), f.Close())
		}, says: "(?i)1 ?MiB|large|big|long"},
		{name: "folder.hcl", make: func(path string) error { return os.Mkdir(path, 0o755) }, says: "(?i)folder|directory|regular"},
		{name: "fifo.hcl", make: func(path string) error { return syscall.Mkfifo(path, 0o644) }, says: "(?i)regular|pipe|fifo"},
		{name: "loop.hcl", make: func(path string) error { return os.Symlink("loop.hcl", path) }, says: "(?i)loop|itself"},
		{name: "dangling.hcl", make: func(path string) error { return os.Symlink("nothing-here", path) }, says: "(?i)no such|exist|dangling|nothing"},
		{name: "outside.hcl", make: func(path string) error {
			target := filepath.Join(filepath.Dir(path), "..", "outside.hcl")
			err := os.WriteFile(target, []byte("project \"outside\" {\n  name = \"Outside\"\n  domain \"outside.example\" {}\n}\n"), 0o644)
			return errors.Join(err, os.Symlink("../outside.hcl", path))
		}, says: "(?i)out of|outside|lead|escape"},
		{name: "device.hcl", make: func(path string) error { return os.Symlink("/dev/zero", path) }, says: "(?i)out of|outside|lead|escape|regular"},
		{name: "link-to-fifo.hcl", make: func(path string) error {
			hidden := filepath.Join(filepath.Dir(path), ".fifo")
			if err := syscall.Mkfifo(hidden, 0o644); err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
			return os.Symlink(".fifo", path)
		}, says: "(?i)regular|pipe|fifo"},
		{name: "socket.hcl", make: func(path string) error {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Close(fd))
		}, says: "(?i)regular|socket"},
	}
}

// TestBadFiles drops bad files into a live folder, one by one. It uses several folders in parallel, because most of the
// time goes into the second read of a broken file. Outside of a campaign it takes every twelfth file: TestBadFolder has them all.
func TestBadFiles(t *testing.T) {
	testrig.Thorough(t)
	t.Parallel()
	folders := testrig.Size(t, 6, 2)
	every := testrig.Size(t, 1, 12)
	all := append(textFiles(), oddFiles()...)
	var wg sync.WaitGroup
	for i := range folders {
		r := newRig(t, nil)
		before, start, stop := r.footprint(), r.highWater(), r.throughout()
		t.Cleanup(stop)
		wg.Go(func() {
			defer stop()
			for n := i * every; n < len(all); n += folders * every {
				r.breaks(all[n])
			}
			stop()
			if grown := r.highWater() - start; grown > mostGrowth && testrig.Full() {
				t.Errorf("folder %d: it grew by %d MiB", i, grown)
			}
			r.unchanged(before)
		})
	}
	wg.Wait()
}
