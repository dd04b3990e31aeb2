package seal_test

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fingerpost/configsrc/seal"
	"fingerpost/resolver/catalog"
)

const secret = "hunter2 is no good password"

func newKey(t testing.TB) (file, recipient string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "keys", "seal.key")
	recipient, err := seal.Keygen(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, recipient
}

func load(t testing.TB, file string) *seal.Identities {
	t.Helper()
	ids, err := seal.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestKeygen(t *testing.T) {
	file, recipient := newKey(t)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if dir, _ := os.Stat(filepath.Dir(file)); dir.Mode().Perm() != 0o700 {
		t.Errorf("mode of the folder %v", dir.Mode())
	}
	before, _ := os.ReadFile(file)
	if !strings.Contains(string(before), "AGE-SECRET-KEY-1") || !strings.Contains(string(before), "# public key: "+recipient) {
		t.Errorf("the file is %q", before)
	}
	if _, err := seal.Keygen(file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second key at the same place: %v", err)
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Error("the key was overwritten")
	}
	link := filepath.Join(filepath.Dir(file), "link.key")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Keygen(link); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a key through a link: %v", err)
	}
	got, err := seal.Recipients(file)
	if err != nil || len(got) != 1 || got[0] != recipient || seal.CheckRecipient(recipient) != nil {
		t.Errorf("recipients %v, %v", got, err)
	}
}

func TestSealAndOpen(t *testing.T) {
	file, recipient := newKey(t)
	ids := load(t, file)
	context := seal.Context(catalog.DeriveProjectUUID("acme"), "password")
	for _, plain := range []string{"", "x", secret, "ü\x00\n", strings.Repeat("a", seal.MaxPlainBytes)} {
		sealed, err := seal.Seal([]string{recipient}, context, plain)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := base64.StdEncoding.Strict().DecodeString(sealed); err != nil || strings.ContainsAny(sealed, "\r\n") {
			t.Errorf("no base64 on one line: %v", err)
		}
		if got, err := ids.Open(context, sealed); err != nil || got != plain {
			t.Errorf("opened %d bytes, %v", len(got), err)
		}
		again, err := seal.Seal([]string{recipient}, context, plain)
		if err != nil || again == sealed {
			t.Errorf("sealing twice gives the same, %v", err)
		}
	}
	if _, err := seal.Seal([]string{recipient}, context, strings.Repeat("a", seal.MaxPlainBytes+1)); err == nil {
		t.Error("a secret of any length")
	}
	if _, err := seal.Seal(nil, context, secret); err == nil {
		t.Error("sealed for nobody")
	}
}

// TestContext expects a value to open only for the object and field that it was made for.
func TestContext(t *testing.T) {
	file, recipient := newKey(t)
	ids := load(t, file)
	a, b := catalog.DeriveProjectUUID("a"), catalog.DeriveProjectUUID("b")
	sealed, err := seal.Seal([]string{recipient}, seal.Context(a, "password"), secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, context := range []string{seal.Context(b, "password"), seal.Context(a, "jwt_secret"), "", seal.Context(a, "password") + "h", seal.Context(a, "passwor")} {
		if got, err := ids.Open(context, sealed); !errors.Is(err, seal.ErrContext) || got != "" {
			t.Errorf("%q opens it: %v", context, err)
		}
	}
	if want := a.String() + "/password"; seal.Context(a, "password") != want {
		t.Errorf("context %q", seal.Context(a, "password"))
	}
}

// TestLength expects passwords of usual lengths to have sealed values of equal length.
func TestLength(t *testing.T) {
	_, recipient := newKey(t)
	length := func(plain string) int {
		s, err := seal.Seal([]string{recipient}, "context of some length: 36 characters/password", plain)
		if err != nil {
			t.Fatal(err)
		}
		return len(s)
	}
	if length("12345678") != length("1234567890123456") {
		t.Error("the length shows")
	}
}

// TestRotation opens with any identity of the file, and with no other.
func TestRotation(t *testing.T) {
	oldFile, oldRecipient := newKey(t)
	newFile, newRecipient := newKey(t)
	_, strangerRecipient := newKey(t)
	a, _ := os.ReadFile(oldFile)
	b, _ := os.ReadFile(newFile)
	both := filepath.Join(t.TempDir(), "both.key")
	if err := os.WriteFile(both, append(append([]byte("\xef\xbb\xbf"), strings.ReplaceAll(string(a), "\n", "\r\n")...), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := load(t, both)
	if got, err := seal.Recipients(both); err != nil || len(got) != 2 || got[0] != oldRecipient || got[1] != newRecipient {
		t.Errorf("recipients %v, %v", got, err)
	}
	for _, to := range [][]string{{oldRecipient}, {newRecipient}, {strangerRecipient, newRecipient}} {
		sealed, err := seal.Seal(to, "c", secret)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ids.Open("c", sealed); err != nil || got != secret {
			t.Errorf("for %v: %v", to, err)
		}
	}
	sealed, err := seal.Seal([]string{strangerRecipient}, "c", secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ids.Open("c", sealed); !errors.Is(err, seal.ErrNoMatch) {
		t.Errorf("a stranger's opens: %v", err)
	}
}

// TestDamage changes every byte of a sealed value; none of the errors shows anything.
func TestDamage(t *testing.T) {
	file, recipient := newKey(t)
	ids := load(t, file)
	sealed, err := seal.Seal([]string{recipient}, "c", secret)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(sealed)
	try := func(what, sealed string) {
		t.Helper()
		got, err := ids.Open("c", sealed)
		if got != "" || !errors.Is(err, seal.ErrFormat) && !errors.Is(err, seal.ErrNoMatch) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter") || len(err.Error()) > 120) {
			t.Errorf("%s: the error says too much: %v", what, err)
		}
	}
	for i := range raw {
		bad := append([]byte{}, raw...)
		bad[i] ^= 1
		try("flipped", base64.StdEncoding.EncodeToString(bad))
		try("cut", base64.StdEncoding.EncodeToString(raw[:i]))
	}
	try("empty", "")
	try("no base64", "not base64!")
	try("a line break", sealed[:40]+"\n"+sealed[40:])
	try("longer", sealed+"AAAA")
	try("huge", strings.Repeat("A", 1<<20))
}

func TestCheckRecipient(t *testing.T) {
	_, recipient := newKey(t)
	for _, bad := range []string{"", "age1", recipient[:len(recipient)-1], recipient + "q", recipient[:10] + "q" + recipient[11:], "AGE-SECRET-KEY-1" + recipient[4:], "ssh-ed25519 AAAA"} {
		if bad == recipient {
			continue
		}
		err := seal.CheckRecipient(bad)
		if err == nil {
			t.Errorf("%q is accepted", bad)
		} else if len(bad) > 20 && strings.Contains(err.Error(), bad[16:]) {
			t.Errorf("the error quotes it: %v", err)
		}
		if _, err := seal.Seal([]string{recipient, bad}, "c", secret); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("sealed for %q: %v", bad, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := seal.Load(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := seal.Load(dir); err == nil {
		t.Error("a folder is loaded")
	}
	f := func(text, want string) {
		t.Helper()
		file := filepath.Join(dir, "x.key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := seal.Load(file)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "QQQ") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	f("", "holds no identity")
	f("# only a comment\n", "holds no identity")
	f("# a\nAGE-SECRET-KEY-1QQQQ\n", "x.key:2: ")
	f("AGE-SECRET-KEY-PQ-1QQQQ\n", "no age X25519 identity")
	f("age1qqq\n", "no age X25519 identity")
	f(strings.Repeat("#\n", 100000), "too large")
}

func FuzzOpen(f *testing.F) {
	file, recipient := newKey(f)
	ids := load(f, file)
	sealed, err := seal.Seal([]string{recipient}, "c", secret)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("c", sealed)
	f.Add("", "")
	f.Fuzz(func(t *testing.T, context, text string) {
		got, err := ids.Open(context, text)
		if (err == nil) != (context == "c" && text == sealed) || err != nil && got != "" {
			t.Errorf("%q, %q: %q, %v", context, text, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	_, recipient := newKey(b)
	for b.Loop() {
		if _, err := seal.Seal([]string{recipient}, "c", secret); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	file, recipient := newKey(b)
	ids := load(b, file)
	sealed, err := seal.Seal([]string{recipient}, "c", secret)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ids.Open("c", sealed); err != nil {
			b.Fatal(err)
		}
	}
}
