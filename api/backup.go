package api

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"fingerpost/resolver"
)

// backupStall is how long whoever takes a backup may leave it where it is.
const backupStall = time.Minute

// headerPID tells the process that a backup comes from, so that "fingerpost backup" can compare it with the one that has
// the data directory it was asked about.
const headerPID = "Fingerpost-Pid"

// backup streams an archive of the store. What is in it is more than the other endpoints tell: the files' bytes, with
// sealed values and key hashes, and the mail log. So it is for this machine only, wherever the ops listener listens.
func (o *Ops) backup(w http.ResponseWriter, r *http.Request) {
	if !fromThisMachine(r) {
		writeJSON(w, http.StatusForbidden, map[string]string{"error": "a backup is given to this machine only: ask from it, by an address and not by a name"})
		return
	}
	w.Header().Set(headerPID, strconv.Itoa(os.Getpid()))
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Time{}) // reading the store comes first, which takes as long as it is large
	out := &stream{w: w, control: control}
	switch err := o.server.resolver.Backup(out); {
	case err == nil:
		o.log.Info("backup written", "bytes", out.n, "took", time.Since(out.begun).Round(time.Millisecond).String())
	case out.n > 0:
		o.log.Warn("backup cut off", "bytes", out.n, "error", err)
		panic(http.ErrAbortHandler) // the only way to tell the caller that this was not all
	case errors.Is(err, resolver.ErrBackupRuns):
		writeJSON(w, http.StatusConflict, map[string]string{"error": err.Error()})
	default:
		o.log.Warn("backup failed", "error", err)
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
	}
}

// fromThisMachine reports whether a request comes from a process on this machine: over a Unix socket, a loopback address
// or the very address that it is sent to. It must name an address as its Host: a page in a browser on this machine has a
// name of its own there, whatever address it lets that name stand for.
func fromThisMachine(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && local.Network() == "unix" {
		return true
	}
	peer := addressIn(r.RemoteAddr)
	at, _ := local.(*net.TCPAddr)
	if !peer.IsLoopback() && (at == nil || !peer.Equal(at.IP)) {
		return false
	}
	name := strings.ToLower(r.Host)
	return addressIn(name) != nil || name == "localhost" || strings.HasPrefix(name, "localhost:")
}

// addressIn is the address in "address:port" or "address", nil where it is a name.
func addressIn(hostPort string) net.IP {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	return net.ParseIP(host)
}

// A stream sends the archive on; a caller who does not take it is cut off.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	n       int64
	begun   time.Time
}

func (s *stream) Write(p []byte) (int, error) {
	if s.n == 0 {
		s.begun = time.Now()
		s.w.Header().Set("Content-Type", "application/gzip")
	}
	s.control.SetWriteDeadline(time.Now().Add(backupStall))
	n, err := s.w.Write(p)
	s.n += int64(n)
	return n, err
}
