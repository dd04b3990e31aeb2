// Command image makes the container image of a release: an OCI archive with one image for each platform in one index.
//
//	image -version 1.2.3 -commit SHA -time 1700000000 -zones ZIP -out FILE linux/amd64=BINARY linux/arm64=BINARY
//
// An image has the binary, Mozilla's CA certificates, time zones, a user and the two volumes, and nothing else: no shell
// and no git. The same input always makes the same bytes: every time is that of the commit, certificates come from a
// pinned module, time zones from the zip file of the Go that builds. It needs no daemon and no network.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the uid and gid of the process, the "nonroot" of other images without a distribution.
const user = 65532

func main() {
	var r release
	var seconds int64
	flag.StringVar(&r.version, "version", "", "version of the release")
	flag.StringVar(&r.commit, "commit", "", "commit of the release")
	flag.Int64Var(&seconds, "time", 0, "time of the commit, in seconds since 1970")
	flag.StringVar(&r.zones, "zones", "", "file lib/time/zoneinfo.zip of a Go distribution")
	out := flag.String("out", "", "file of the archive")
	flag.Parse()
	r.at = time.Unix(seconds, 0).UTC()
	if err := r.write(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type release struct {
	version, commit string
	zones           string
	at              time.Time
}

func (r release) write(out string, binaries []string) error {
	if r.version == "" || r.zones == "" || out == "" || len(binaries) == 0 {
		return errors.New("usage: image -version V -commit C -time SECONDS -zones ZIP -out FILE OS/ARCH=BINARY…")
	}
	base, err := r.base()
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		platform, file, ok := strings.Cut(b, "=")
		if !ok {
			return fmt.Errorf("%s is not OS/ARCH=BINARY", b)
		}
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return err
		}
		image, err := r.image(p, base, file)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: p}})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := "fingerpost:" + r.version // the second is how containerd's "ctr images import" and docker name it
	if err := l.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name,
		"io.containerd.image.name": "docker.io/library/" + name})); err != nil {
		return err
	}
	return r.archive(dir, out)
}

func (r release) image(p *v1.Platform, base v1.Layer, binary string) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	program, err := r.layer([]entry{{name: "usr/"}, {name: "usr/bin/"}, {name: "usr/bin/fingerpost", mode: 0o755, content: content}})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), base, program)
	if err != nil {
		return nil, err
	}
	config, err := partial.ConfigFile(image)
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created, config.OS, config.Architecture = v1.Time{Time: r.at}, p.OS, p.Architecture
	for i := range config.History {
		config.History[i].Created = v1.Time{Time: r.at}
	}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/fingerpost"}, Cmd: []string{"serve"}, User: fmt.Sprintf("%d:%d", user, user),
		WorkingDir: "/var/lib/fingerpost",
		Volumes:    map[string]struct{}{"/etc/fingerpost": {}, "/var/lib/fingerpost": {}},
		Env: []string{"PATH=/usr/bin", "HOME=/var/lib/fingerpost", "FINGERPOST_CONFIG=/etc/fingerpost/projects.d",
			"FINGERPOST_DATA=/var/lib/fingerpost", "FINGERPOST_LISTEN=0.0.0.0:8080", "FINGERPOST_OPS_LISTEN=0.0.0.0:9090"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}},
		Labels: map[string]string{"org.opencontainers.image.title": "fingerpost", "org.opencontainers.image.licenses": "MIT",
			"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.created": r.at.Format(time.RFC3339)},
	}
	return mutate.ConfigFile(image, config)
}

// An entry is a file of a layer, or with a name that ends in a slash a folder.
type entry struct {
	name    string
	mode    int64 // 0: 0755 for folders, 0644 for files
	owner   int
	content []byte
}

// base is the layer that all platforms share.
func (r release) base() (v1.Layer, error) {
	entries := []entry{
		{name: "tmp/", mode: 0o1777},
		{name: "etc/"}, {name: "etc/passwd", content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\n"+
			"fingerpost:x:%d:%d:fingerpost:/var/lib/fingerpost:/sbin/nologin\n", user, user)},
		{name: "etc/group", content: fmt.Appendf(nil, "root:x:0:\nfingerpost:x:%d:\n", user)},
		{name: "etc/nsswitch.conf", content: []byte("hosts: files dns\n")},
		{name: "etc/ssl/"}, {name: "etc/ssl/certs/"}, {name: "etc/ssl/certs/ca-certificates.crt", content: certificates()},
		{name: "etc/fingerpost/", owner: user}, {name: "etc/fingerpost/projects.d/", owner: user},
		{name: "var/"}, {name: "var/lib/"}, {name: "var/lib/fingerpost/", owner: user, mode: 0o700},
		{name: "usr/"}, {name: "usr/share/"}, {name: "usr/share/zoneinfo/"},
	}
	zones, err := zoneinfo(r.zones)
	if err != nil {
		return nil, err
	}
	return r.layer(append(entries, zones...))
}

// certificates are those that Mozilla trusts for servers, as golang.org/x/crypto has them.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a Buffer takes all
	}
	return out.Bytes()
}

// zoneinfo unpacks the time zones that the Go distribution brings.
func zoneinfo(file string) (entries []entry, err error) {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return nil, fmt.Errorf("time zones: %w", err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		e := entry{name: "usr/share/zoneinfo/" + f.Name}
		if !f.FileInfo().IsDir() {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			if e.content, err = io.ReadAll(r); err != nil {
				return nil, err
			}
			r.Close()
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return entries, nil
}

func (r release) layer(entries []entry) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: r.at, Size: int64(len(e.content)),
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		switch {
		case h.Mode != 0:
		case h.Typeflag == tar.TypeDir:
			h.Mode = 0o755
		default:
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// archive packs a layout's folder, with names in order and numeric owners.
func (r release) archive(dir, out string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: name, Mode: 0o644, ModTime: r.at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
			return w.WriteHeader(h)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h.Size = int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, w.Close(), f.Close())
}
