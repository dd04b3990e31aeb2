package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certCheckEvery is the least time between two checks of the files by handshakes.
const certCheckEvery = time.Second

// TLSConfig serves the certificate in certFile and keyFile, both PEM, and reloads them when the files change. A pair
// that does not load is logged once, and the last good one stays. TLS 1.2 is the oldest version. The error is that of
// the first load.
func TLSConfig(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	p := &keyPair{certFile: certFile, keyFile: keyFile, log: log}
	p.seen = p.statFiles()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	p.good.Store(&cert)
	p.checked.Store(time.Now().UnixNano())
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.current(), nil },
	}, nil
}

// A keyPair is a certificate that follows its files. Safe for concurrent use.
type keyPair struct {
	certFile, keyFile string
	log               *slog.Logger
	good              atomic.Pointer[tls.Certificate]
	checked           atomic.Int64 // when the files were last looked at, unix nanoseconds

	mu   sync.Mutex // guards seen
	seen [2]fileStat
}

type fileStat struct {
	size    int64
	modTime time.Time
	missing bool
}

// current checks the files if the last check is certCheckEvery ago, and returns the last good pair.
func (p *keyPair) current() *tls.Certificate {
	now, last := time.Now().UnixNano(), p.checked.Load()
	if (now-last >= int64(certCheckEvery) || now < last) && p.checked.CompareAndSwap(last, now) {
		p.reload()
	}
	return p.good.Load()
}

func (p *keyPair) reload() {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Stat before the load: the next check sees a change in between.
	seen := p.statFiles()
	if seen == p.seen {
		return
	}
	p.seen = seen
	cert, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		p.log.Error("new certificate does not load, the old one stays", "cert", p.certFile, "key", p.keyFile, "error", err)
		return
	}
	p.good.Store(&cert)
	p.log.Info("certificate reloaded", "cert", p.certFile)
}

func (p *keyPair) statFiles() (seen [2]fileStat) {
	for i, file := range []string{p.certFile, p.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			seen[i].missing = true
			continue
		}
		seen[i] = fileStat{size: info.Size(), modTime: info.ModTime().Round(0)}
	}
	return seen
}
