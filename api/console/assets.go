package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed assets pages
var content embed.FS

// Assets has console.css and icon.svg, for other pages of this program.
func Assets() fs.FS { return content }

// An asset is a file for browsers. Its name carries a hash of its content, so that it may be kept forever.
type asset struct {
	kind          string
	plain, packed []byte
	tag           string
}

var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml"}

// loadAssets returns the assets by the names that pages use, "console.0123456789abcdef.css".
func loadAssets() map[string]*asset {
	all := map[string]*asset{}
	names, err := fs.ReadDir(content, "assets")
	mustRead(err)
	for _, entry := range names {
		ext := path.Ext(entry.Name())
		if kinds[ext] == "" {
			continue // a licence
		}
		b, err := content.ReadFile("assets/" + entry.Name())
		mustRead(err)
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, _ = zip.Write(b)
		_ = zip.Close() // a Buffer takes everything
		sum := sha256.Sum256(b)
		tag := hex.EncodeToString(sum[:8])
		all[strings.TrimSuffix(entry.Name(), ext)+"."+tag+ext] = &asset{kind: kinds[ext], plain: b, packed: packed.Bytes(),
			tag: `"` + tag + `"`}
	}
	return all
}

// mustRead ends the process if a file of the binary cannot be read or parsed: impossible while the tests open every page.
func mustRead(err error) {
	if err != nil {
		panic("console: a file of the binary: " + err.Error())
	}
}

// assetPath returns the path of an asset by the name of its file.
func (c *Console) assetPath(name string) (string, error) {
	ext := path.Ext(name)
	for known := range c.files() {
		if strings.HasPrefix(known, strings.TrimSuffix(name, ext)+".") && path.Ext(known) == ext {
			return Prefix + "assets/" + known, nil
		}
	}
	return "", fmt.Errorf("no asset %s", name)
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := c.files()[r.PathValue("name")]
	h := w.Header()
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Type", a.kind)
	h.Set("ETag", a.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.packed
	}
	_, _ = w.Write(body)
}
