package ops

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"fingerpost/resolver"
)

// backupStall is how long a client may take none of a backup before it is cut off.
const backupStall = time.Minute

// headerPID carries the id of the process that a backup or a status comes from. "fingerpost backup" and "fingerpost
// doctor" compare it with the process that holds the data directory.
const headerPID = "Fingerpost-Pid"

// backup streams an archive of the store: the files' bytes, with sealed values and key hashes, the mail log and the
// queue.
func (o *Server) backup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(headerPID, strconv.Itoa(os.Getpid()))
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Time{}) // reading a large store takes long before the first byte
	out := &stream{w: w, control: control}
	switch err := o.Resolver.Backup(out); {
	case err == nil:
		o.backedUp.Store(time.Now().UnixMilli())
		o.Logger.Info("backup written", "bytes", out.n, "took", time.Since(out.begun).Round(time.Millisecond).String())
	case out.n > 0:
		o.Logger.Warn("backup cut off", "bytes", out.n, "error", err)
		panic(http.ErrAbortHandler) // cuts the connection, so that the client does not take a part for the whole
	case errors.Is(err, resolver.ErrBackupRuns):
		writeJSON(w, http.StatusConflict, map[string]string{"error": err.Error()})
	default:
		o.Logger.Warn("backup failed", "error", err)
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": err.Error()})
	}
}

// A stream writes the archive to the client, with a deadline of its own for each write.
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
