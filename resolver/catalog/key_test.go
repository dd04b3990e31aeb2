package catalog_test

import (
	"bytes"
	"crypto/sha256"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fingerpost/resolver/catalog"
)

const alphabet62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// goldenKey is a key made once: if the form changed, existing keys would stop working.
const goldenKey = "fpk_7kq2m9xa_0123456789ABCDEFGHIJKLMNOPQRSTUV" +
	"217UNx"

// goldenHash is the SHA-256 of goldenKey.
const goldenHash = "47fe459eac988698e6ecb636364996a57377aadb61a2eef3816ccf051fd30a95"

// checked appends the checksum of a body, computed independently.
func checked(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	digits := make([]byte, 6)
	for i := 5; i >= 0; i-- {
		digits[i] = alphabet62[sum%62]
		sum /= 62
	}
	return body + string(digits)
}

func secret32(c byte) string { return strings.Repeat(string(c), 32) }

func TestKeyTextID(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		id, ok := catalog.KeyTextID([]byte(text))
		if ok != (want != "") || string(id) != want {
			t.Errorf("KeyTextID(%q) = %q, %v; want %q", text, id, ok, want)
		}
	}
	f(goldenKey, "7kq2m9xa")
	f(checked("fpk_abc123_"+secret32('Z')), "abc123")
	f(checked("fpk_abcdefghij012345_"+secret32('z')), "abcdefghij012345")
	// Truncated, extended, changed.
	f("", "")
	f("fpk_", "")
	f(goldenKey[:len(goldenKey)-1], "")
	f(goldenKey[1:], "")
	f(goldenKey+"0", "")
	f(goldenKey+"\n", "")
	f(" "+goldenKey, "")
	f("FPK"+goldenKey[3:], "")
	f(strings.ToUpper(goldenKey), "")
	f(strings.ToLower(goldenKey), "")
	// A valid checksum does not save an invalid form.
	f(checked("fpk_abc12_"+secret32('Z')), "")
	f(checked("fpk_abcdefghij0123456_"+secret32('Z')), "")
	f(checked("fpk_Abc123_"+secret32('Z')), "")
	f(checked("fpk_abc-23_"+secret32('Z')), "")
	f(checked("fpk_abc_23_"+secret32('Z')), "")
	f(checked("fpk_abc123_"+secret32('-')), "")
	f(checked("fpk_abc123_"+secret32('_')), "")
	f(checked("fpk_abc123_"+secret32('\x00')), "")
	f(checked("fpk_abc123_"+secret32('Z')+"Z"), "")
	f(checked("fpk_abc123_"+secret32('Z')[1:]), "")
	f(checked("fpk_abc123-"+secret32('Z')), "")
	f(checked("fpx_abc123_"+secret32('Z')), "")
	f(checked("fpk__"+secret32('Z')), "")
	f(strings.Repeat("fpk_", 10000), "")
}

// Any single wrong character, and any two swapped neighbours, are detected without comparing the key's hash.
func TestKeyTextTypo(t *testing.T) {
	for i := range len(goldenKey) {
		for _, c := range []byte(alphabet62 + "_-") {
			typo := []byte(goldenKey)
			if typo[i] == c {
				continue
			}
			typo[i] = c
			if id, ok := catalog.KeyTextID(typo); ok {
				t.Errorf("KeyTextID(%q) = %q", typo, id)
			}
		}
		if i > 0 && goldenKey[i] != goldenKey[i-1] {
			typo := []byte(goldenKey)
			typo[i], typo[i-1] = typo[i-1], typo[i]
			if id, ok := catalog.KeyTextID(typo); ok {
				t.Errorf("KeyTextID(%q) = %q", typo, id)
			}
		}
	}
}

func TestNewKeyText(t *testing.T) {
	const n = 2000
	texts, ids := map[string]bool{}, map[string]bool{}
	var idLetters, secretLetters [256]int
	for range n {
		text, id := catalog.NewKeyText()
		if got, ok := catalog.KeyTextID([]byte(text)); !ok || string(got) != id {
			t.Fatalf("KeyTextID(%q) = %q, %v; want %q", text, got, ok, id)
		}
		if !catalog.KeyPattern.MatchString(text) || catalog.KeyPattern.FindString(text) != text {
			t.Fatalf("KeyPattern does not match %q as a whole", text)
		}
		k := catalog.Key{Name: "checkout", ID: id, Allow: catalog.MayRead}
		if ps := k.Validate(); len(ps) > 0 {
			t.Fatalf("a key with the id %q: %v", id, ps)
		}
		texts[text], ids[id] = true, true
		for _, c := range []byte(id) {
			idLetters[c]++
		}
		secret := text[len("fpk_")+len(id)+1:]
		for _, c := range []byte(secret[:32]) {
			secretLetters[c]++
		}
	}
	if len(texts) != n || len(ids) != n {
		t.Errorf("%d texts and %d ids of %d are different", len(texts), len(ids), n)
	}
	// Every letter occurs about equally often: a modulo bias or a truncated alphabet would show.
	f := func(what string, counts [256]int, alphabet string, drawn int) {
		t.Helper()
		want := drawn / len(alphabet)
		for c, got := range counts {
			switch in := strings.IndexByte(alphabet, byte(c)) >= 0; {
			case !in && got > 0:
				t.Errorf("%s: %q does not belong to the alphabet", what, rune(c))
			case in && (got < want*2/3 || got > want*3/2):
				t.Errorf("%s: %q came %d times, about %d expected", what, rune(c), got, want)
			}
		}
	}
	f("id", idLetters, "0123456789abcdefghijklmnopqrstuvwxyz", 8*n)
	f("secret", secretLetters, alphabet62, 32*n)
}

func TestFindKeyText(t *testing.T) {
	other := checked("fpk_abc123_" + secret32('Z'))
	wrong := goldenKey[:len(goldenKey)-1] + "!"
	typo := strings.Replace(goldenKey, "ABC", "ABD", 1)
	f := func(text, want string) {
		t.Helper()
		start, end := catalog.FindKeyText([]byte(text))
		if want == "" {
			if start != -1 || end != -1 {
				t.Errorf("FindKeyText(%q) = %d, %d; want -1, -1", text, start, end)
			}
			return
		}
		if start < 0 || text[start:end] != want {
			t.Errorf("FindKeyText(%q) = %d, %d; want %q", text, start, end, want)
		}
	}
	f("", "")
	f("no key at all: fpk_", "")
	f(goldenKey, goldenKey)
	f("hash = \""+goldenKey+"\"\n", goldenKey)
	f("# "+goldenKey+", "+other, goldenKey)
	f("x"+goldenKey+"yz", goldenKey)
	f(typo, "")
	f(wrong, "")
	f(typo+" "+other, other) // text that only looks like a key does not hide a real one
	f("fpk_abc"+goldenKey, goldenKey)
	f(goldenKey[:20]+"\n"+goldenKey[20:], "")
	f("\xff\x00"+goldenKey+"\x00", goldenKey)
	f(catalog.HashKeyText(goldenKey), "")
}

func TestKeyHash(t *testing.T) {
	const want = "sha256:" + goldenHash
	if got := catalog.HashKeyText(goldenKey); got != want {
		t.Errorf("HashKeyText = %q, want %q", got, want)
	}
	h, err := catalog.ParseKeyHash(want)
	if err != nil || h != sha256.Sum256([]byte(goldenKey)) {
		t.Errorf("ParseKeyHash = %x, %v", h, err)
	}
	for _, bad := range []string{
		"", "sha256:", goldenHash, "SHA256:" + goldenHash, "sha256:" + goldenHash[1:], want + "00", want + "0", " " + want, want + "\n",
		"sha256:" + strings.Repeat("g", 64), "sha512:" + goldenHash, goldenKey,
	} {
		if h, err := catalog.ParseKeyHash(bad); err == nil || h != ([32]byte{}) {
			t.Errorf("ParseKeyHash(%q) = %x, %v; want an error", bad, h, err)
		} else if strings.Contains(err.Error(), "fpk_") {
			t.Errorf("ParseKeyHash quotes what it was given: %v", err)
		}
	}
}

func TestKeyTextIDAllocations(t *testing.T) {
	good, typo := []byte(goldenKey), []byte(goldenKey)
	typo[20] ^= 1
	for _, text := range [][]byte{good, typo, nil, bytes.Repeat(good, 100)} {
		if n := testing.AllocsPerRun(200, func() { catalog.KeyTextID(text) }); n != 0 {
			t.Errorf("KeyTextID(%q): %v allocations, want 0", text, n)
		}
	}
}

func TestPermissions(t *testing.T) {
	all := []string{"resolve", "read", "write", "mail", "secrets"}
	p, unknown := catalog.ParsePermissions(all)
	if p != catalog.MayResolve|catalog.MayRead|catalog.MayWrite|catalog.MayMail|catalog.MaySecrets || unknown != nil {
		t.Errorf("ParsePermissions(%q) = %b, %q", all, p, unknown)
	}
	if got := p.Words(); !slices.Equal(got, all) {
		t.Errorf("Words = %q, want %q", got, all)
	}
	p, unknown = catalog.ParsePermissions([]string{"mail", "Read", "mail", "", "resolve "})
	if p != catalog.MayMail || !slices.Equal(unknown, []string{"Read", "", "resolve "}) {
		t.Errorf("ParsePermissions = %b, %q", p, unknown)
	}
	if got := catalog.Permission(0).Words(); got != nil {
		t.Errorf("Words of none = %q", got)
	}
}

func TestKeyValidate(t *testing.T) {
	good := catalog.Key{Name: "checkout", ID: "7kq2m9", Allow: catalog.MayRead, Projects: []string{"acme"}}
	f := func(change func(k *catalog.Key), want ...string) {
		t.Helper()
		k := good
		change(&k)
		if got := paths(k.Validate()); !slices.Equal(got, want) {
			t.Errorf("Validate(%+v): problems on %q, want %q", k, got, want)
		}
	}
	f(func(*catalog.Key) {})
	f(func(k *catalog.Key) { k.Projects = nil })
	f(func(k *catalog.Key) { k.Projects = []string{} }, "projects")
	f(func(k *catalog.Key) { k.Projects = []string{"acme", "Acme", "x_y"} }, "projects", "projects")
	f(func(k *catalog.Key) { k.Name = "" }, "name")
	f(func(k *catalog.Key) { k.Name = strings.Repeat("n", 65) }, "name")
	f(func(k *catalog.Key) { k.Name = "check out" }, "name")
	f(func(k *catalog.Key) { k.Name = "checkout\n" }, "name")
	f(func(k *catalog.Key) { k.ID = "7kq2m" }, "id")
	f(func(k *catalog.Key) { k.ID = "7KQ2M9" }, "id")
	f(func(k *catalog.Key) { k.ID = strings.Repeat("a", 17) }, "id")
	f(func(k *catalog.Key) { *k = catalog.Key{} }, "name", "id", "allow")
}

// paths lists the paths of problems.
func paths(ps catalog.Problems) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Path)
	}
	return out
}

var keyForm = regexp.MustCompile(`^fpk_[a-z0-9]{6,16}_[0-9A-Za-z]{38}$`)

// FuzzKeyText: no input panics; exactly the texts with the form and the checksum are accepted; the search agrees with
// the check.
func FuzzKeyText(f *testing.F) {
	f.Add([]byte(goldenKey))
	f.Add([]byte(goldenKey[:30]))
	f.Add([]byte("key \"x\" { hash = \"" + goldenKey + "\" }"))
	f.Add([]byte(checked("fpk_abcdefghij012345_" + secret32('z'))))
	f.Add([]byte(checked("fpk_ab-123_" + secret32('z'))))
	f.Add([]byte("fpk_fpk_fpk_" + goldenKey))
	f.Fuzz(func(t *testing.T, text []byte) {
		id, ok := catalog.KeyTextID(text)
		// "$" of a multi-line text is no trap here: without (?m) it is the end of the text only.
		want := keyForm.Match(text) && checked(string(text[:len(text)-6])) == string(text)
		if ok != want || (ok && !bytes.HasPrefix(text, append([]byte("fpk_"), append(slices.Clone(id), '_')...))) {
			t.Errorf("KeyTextID(%q) = %q, %v; want %v", text, id, ok, want)
		}
		if !ok && id != nil {
			t.Errorf("KeyTextID(%q) gives the id %q of a bad text", text, id)
		}
		start, end := catalog.FindKeyText(text)
		if ok && (start != 0 || end != len(text)) {
			t.Errorf("FindKeyText(%q) = %d, %d; want the whole", text, start, end)
		}
		if start >= 0 {
			if _, ok := catalog.KeyTextID(text[start:end]); !ok {
				t.Errorf("FindKeyText(%q) found %q, which is no key", text, text[start:end])
			}
		} else if len(text) > 4<<10 {
			return // trying every place is slow
		} else if i := firstKey(text); i >= 0 {
			t.Errorf("FindKeyText(%q) overlooks the key at %d", text, i)
		}
	})
}

// firstKey tries every place and every length.
func firstKey(text []byte) int {
	for i := range text {
		for n := 4 + 6 + 1 + 38; n <= 4+16+1+38 && i+n <= len(text); n++ {
			if _, ok := catalog.KeyTextID(text[i : i+n]); ok {
				return i
			}
		}
	}
	return -1
}
